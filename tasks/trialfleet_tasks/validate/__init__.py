TIMEOUT_S = 300.0  # of a test run, unless one says otherwise
