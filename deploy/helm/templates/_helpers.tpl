{{/* What the profile says, as YAML. */}}
{{- define "ratchet.generated" -}}
{{- $generated := .Values.generated -}}
{{- if not $generated -}}{{- $generated = (.Files.Get "profile.yaml" | fromYaml).generated -}}{{- end -}}
{{- if ne .Release.Namespace $generated.namespace -}}
{{- fail (printf "the profile's namespace is %s (orchestration.kubernetes.namespace): use --namespace %s" $generated.namespace $generated.namespace) -}}
{{- end -}}
{{- $generated | toYaml -}}
{{- end -}}

{{/* A container's environment from its pod's own secret. */}}
{{- define "ratchet.environment" -}}
envFrom:
  - configMapRef: {name: ratchet-environment}
  - secretRef: {name: {{ . }}}
{{- end -}}

{{/* Rolls the pods when their settings change. */}}
{{- define "ratchet.checksum" -}}
checksum/settings: {{ include "ratchet.generated" . | sha256sum }}
{{- end -}}
