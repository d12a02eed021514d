"""The method `default`: the best that was measured, with weights learnt on other repositories."""
