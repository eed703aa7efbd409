"""The ledger of promotions, its database, and its copy in MLflow."""
