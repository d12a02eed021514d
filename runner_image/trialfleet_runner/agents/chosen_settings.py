"""`options.settings`: keys of an agent's own configuration file that a campaign may choose, and those that it may
not, since they are the isolation, the budget or another field of the campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.treatments import merged

_FIXED = "leave it out: it belongs to the isolation or the budget of every attempt"
_MODEL = "use model: of the agent or of the condition"
_EFFORT = "use effort: of the condition, or options.effort"
_HOOKS = "use hook: on_read, fail_fast: true or channel: rules of the condition"
_MCP = "use mcp: of the condition"
_SKILLS = "use skills: of the condition"
_TEXT = "use files: or inline: of the condition"

# agent -> way out -> keys, dots between the levels, as patterns of fnmatch. All that an adapter writes is here.
RESERVED: dict[str, dict[str, str]] = {
    "claude-code": {
        f"{_HOOKS}, or put .claude/settings.json in a context": "hooks disableAllHooks statusLine",
        _MODEL: "model availableModels modelOverrides env.ANTHROPIC_*MODEL* env.CLAUDE_CODE_SUBAGENT_MODEL",
        _EFFORT: "effortLevel env.CLAUDE_CODE_EFFORT_LEVEL",
        _MCP: "mcpServers enableAllProjectMcpServers enabledMcpjsonServers",
        _FIXED: "apiKeyHelper aws* gcp* force* otel* permissions sandbox autoUpdates* extraKnownMarketplaces "
        "env.ANTHROPIC_* env.AWS_* env.*GOOGLE_* env.CLAUDE_CODE_USE_* env.*_PROXY env.*_proxy env.OTEL_* "
        "env.CLAUDE_CODE_ENABLE_TELEMETRY env.CLAUDE_CONFIG_DIR env.CLAUDE_CODE_MAX_RETRIES env.NODE_* env.HOME "
        "env.PATH env.LD_* env.IS_SANDBOX env.DISABLE_AUTOUPDATER env.DISABLE_TELEMETRY "
        "env.DISABLE_ERROR_REPORTING env.CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC env.ENABLE_TOOL_SEARCH "
        "env.CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL env.CLAUDE_CODE_DISABLE_AUTO_MEMORY "
        "env.ENABLE_CLAUDEAI_MCP_SERVERS",
    },
    "codex": {
        _MODEL: "model review_model model_catalog_json oss_provider profile profiles",
        _EFFORT: "model_reasoning_effort plan_mode_reasoning_effort",
        _HOOKS: "hooks notify",
        _MCP: "mcp_*",
        _SKILLS: "skills",
        _TEXT: "developer_instructions instructions *instructions_file project_doc_fallback_filenames",
        _FIXED: "model_provider model_providers *base_url web_search tools.web_search analytics feedback otel "
        "check_for_update_on_startup allow_login_shell approval* sandbox_* default_permissions permissions "
        "shell_environment_policy cli_auth_* forced_* history log_dir sqlite_home plugins apps marketplaces "
        "projects experimental_thread_store* features.api_key_model_discovery features.apps "
        "features.daemon_auto_start features.enable_request_compression features.goals features.*hooks "
        "features.image_generation features.multi_agent* features.network_proxy features.plugins "
        "features.remote_plugin features.skill_search features.tool_suggest features.web_search*",
    },
    "copilot": {
        _MODEL: "model autoTier continueOnAutoMode subagents.agents.*.model",
        _EFFORT: "effortLevel reasoningEffort",
        _HOOKS: "hooks disableAllHooks statusLine",
        _MCP: "mcp*",
        _SKILLS: "skill*",
        _FIXED: "autoUpdate* allowedUrls deniedUrls proxy* bashEnv trustedFolders default* custom* ide "
        "permissions allowedTools deniedTools enabledPlugins extraKnownMarketplaces *oken* "
        "*oggedIn*",
    },
    "opencode": {
        _MODEL: "model small_model agent.*.model mode.*.model provider.*.models.*.id",
        _EFFORT: "agent.*.variant",
        _MCP: "mcp",
        _SKILLS: "skills",
        _TEXT: "instructions",
        _FIXED: "autoupdate share autoshare snapshot enabled_providers disabled_providers permission "
        "agent.*.permission agent.*.steps agent.*.maxSteps mode.*.permission tools.webfetch tools.websearch "
        "agent.*.tools.web* plugin server enterprise experimental.openTelemetry provider.*.options provider.*.api "
        "provider.*.npm provider.*.env provider.*.models.*.provider lsp formatter",
    },
    "gemini": {
        _MODEL: "model.name",
        _HOOKS: "hooks hooksConfig",
        _MCP: "mcp mcpServers",
        _SKILLS: "skills",
        _TEXT: "context.fileName context.includeDirectories context.loadMemoryFromIncludeDirectories",
        "use max_turns: of the agent": "model.maxSessionTurns",
        "use options.max_retries": "general.retryFetchErrors general.maxAttempts",
        _FIXED: "security privacy telemetry admin ide advanced policyPaths adminPolicyPaths general.*AutoUpdate* "
        "general.defaultApprovalMode general.checkpointing tools.exclude tools.allowed tools.sandbox* "
        "tools.discoveryCommand tools.callCommand extensions billing",
    },
    "mini-swe-agent": {
        _MODEL: "model.model_name model.model_class model.model_kwargs.model model.model_kwargs.fallbacks",
        _EFFORT: "model.model_kwargs.reasoning_effort",
        "use max_turns: of the agent": "agent.step_limit",
        "use options.max_retries": "model.model_kwargs.*retries",
        "use options.command_timeout_s": "environment.timeout",
        _FIXED: "run agent.agent_class agent.cost_limit agent.output_path agent.mode agent.confirm_exit "
        "agent.whitelist_actions agent.wall_time_limit_seconds environment.environment_class environment.cwd "
        "model.litellm_model_registry model.cost_tracking model.model_kwargs.api_* model.model_kwargs.base_url "
        "model.model_kwargs.custom_llm_provider model.model_kwargs.extra_headers model.model_kwargs.headers",
    },
}


def refuse_reserved(kind: str, chosen: Mapping[str, Any]) -> None:
    """Raises `OperatorError` naming the first key of `chosen` that no campaign may choose, with the way out."""
    for path in paths_of(chosen):
        for way_out, patterns in RESERVED.get(kind, {}).items():
            if any(_overlap(pattern.split("."), path) for pattern in patterns.split()):
                name = ".".join(path)
                raise OperatorError(
                    f"settings.{name} of {kind} is not for a campaign to choose",
                    where=f"agent: options.settings.{name}",
                    hint=way_out,
                )


def with_settings(chosen: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration file: what was chosen, and over it what no campaign may choose.

    >>> with_settings({"a": {"b": 1, "c": None}}, {"a": {"d": 2}})
    {'a': {'b': 1, 'd': 2}}
    """
    return merged(merged({}, chosen), fixed)


def paths_of(settings: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where the values are. A mapping without values says nothing.

    >>> [*paths_of({"a": {"b": 1, "c.d": [2]}, "e": {}})]
    [('a', 'b'), ('a', 'c.d')]
    """
    for name, value in settings.items():
        path = (*above, str(name))
        if isinstance(value, Mapping):
            yield from paths_of(cast("Mapping[str, Any]", value), path)
        else:
            yield path


def _overlap(pattern: list[str], path: tuple[str, ...]) -> bool:
    """Whether a value there is below the pattern, or in the place of what the pattern is below."""
    return all(fnmatchcase(name, part) for name, part in zip(path, pattern, strict=False))
