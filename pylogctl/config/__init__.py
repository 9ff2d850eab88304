"""`pylogctl config`: settings of topics and brokers that change while brokers run."""
