#!/bin/bash
# boot.sh LINUX COMMAND: run the command in this repository, in a separate Linux with cgroup
# version 2 alone; see README.md.
set -euo pipefail
linux=$1 repository=$(realpath "$(dirname "$0")/../../..")
guest=$(mktemp -d)
trap 'rm -rf "$guest"' EXIT
printf '%s\n' "$2" >"$guest/command"
cat >"$guest/init" <<INIT
#!/bin/bash
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PYTHONPATH='$repository' PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run && mkdir /run/repository /run/guest
mount --bind '$repository' /run/repository && mount --bind '$guest' /run/guest
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p '$repository' && mount --bind /run/repository '$repository'
ip link set lo up
cd '$repository' && uname -r && setsid bash /run/guest/command
echo "exit status \$?"
poweroff -ff
INIT
chmod +x "$guest/init"
nice -n 19 "$linux" mem="${MEMORY:-2500M}" rootfstype=hostfs rootflags=/ ro init="$guest/init" con=null con0=fd:0,fd:1 quiet </dev/null 2>&1 | tee "$guest/said"
grep -aq '^exit status 0' "$guest/said"
