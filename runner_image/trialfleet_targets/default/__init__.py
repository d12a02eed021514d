"""The method `default`: the best measured method, with weights trained on other repositories."""
