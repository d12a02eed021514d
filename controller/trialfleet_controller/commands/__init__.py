"""The controller's commands, one module each: imported only when called."""
