"""Compare many trainings: seeds, ablation, hyperparameter tuning and few-shot adaptation."""
