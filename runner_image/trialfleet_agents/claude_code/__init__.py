"""Claude Code as an agent: the real command line program, isolated, behind the gateway."""

from trialfleet_agents.claude_code.agent import ClaudeCode

__all__ = ["ClaudeCode"]
