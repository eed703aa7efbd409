"""Compare many trainings: seeds, ablation, hyperparameter tuning and few-shot adaptation. Also the
acceptance run of a GPU (acceptance/).

In: settings and the current champion. Out: tables, plots and JSON files under the home's reports.
Nothing is promoted here.
"""
