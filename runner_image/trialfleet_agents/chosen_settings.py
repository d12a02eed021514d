"""`options.settings`: keys of an agent's own configuration file that a campaign may choose, and those that it may
not, since they are the isolation, the budget or another field of the campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
_PRICE = "leave it out: requests would have other prices than those that costs are counted by"

# agent -> way out -> keys as patterns of fnmatch: dots between the levels, an item of a list by its number. All
# that an adapter writes is here.
RESERVED: dict[str, dict[str, str]] = {
    "claude-code": {
        f"{_HOOKS}, or put .claude/settings.json in a context": "hooks disableAllHooks statusLine",
        _MODEL: "model *Model *Models modelOverrides modelPicker modelCatalogUrl switchModelsOnFlag "
        "env.ANTHROPIC_*MODEL* env.CLAUDE_CODE_SUBAGENT_MODEL",
        _EFFORT: "effortLevel maxEffortLevel ultracode env.CLAUDE_CODE_EFFORT_LEVEL",
        _MCP: "mcpServers enableAllProjectMcpServers *McpjsonServers *McpServers* *ClaudeAi*",
        _TEXT: "claudeMd claudeMdExcludes autoMemory* autoDream* companyAnnouncements",
        _PRICE: "fastMode* modelPricing",
        _FIXED: "apiKeyHelper proxyAuthHelper policyHelper* processWrapper xaaIdp aws* gcp* gateway* force* otel* "
        "permissions sandbox autoUpdates* extraKnownMarketplaces downloadsMirrorUrl required*Version "
        "minimumVersion prependPlugins appendPlugins pluginConfigs remote* autoUploadSessions sshConfigs "
        "crossSessionInbound allowManaged* env",
    },
    "codex": {
        _MODEL: "model review_model model_catalog_json oss_provider profile profiles agents auto_review",
        _EFFORT: "model_reasoning_effort plan_mode_reasoning_effort",
        _HOOKS: "hooks notify",
        _MCP: "mcp_*",
        _SKILLS: "skills",
        _TEXT: "developer_instructions instructions *instructions_file project_doc_* project_root_markers "
        "memories experimental_compact_prompt_file",
        _PRICE: "service_tier",
        _FIXED: "model_provider model_providers *base_url web_search tools.web_search analytics feedback otel "
        "check_for_update_on_startup allow_login_shell approval* sandbox_* default_permissions permissions "
        "shell_environment_policy cli_auth_* forced_* history log_dir sqlite_home plugins apps marketplaces "
        "projects experimental_thread_* experimental_realtime_* realtime debug tool_suggest js_repl_node_path "
        "features",
    },
    "copilot": {
        _MODEL: "model autoTier continueOnAutoMode subagents.agents.*.model",
        _EFFORT: "effortLevel reasoningEffort",
        _HOOKS: "hooks disableAllHooks statusLine",
        _MCP: "mcp* *McpServers",
        _SKILLS: "skill*",
        _TEXT: "memory",
        _PRICE: "contextTier",
        _FIXED: "experimental autoUpdate* allowedUrls deniedUrls proxy* bashEnv trustedFolders default* custom* "
        "ide permissions allowedTools deniedTools enabledPlugins extraKnownMarketplaces *oken* "
        "*oggedIn*",
    },
    "opencode": {
        _MODEL: "model small_model agent.*.model mode.*.model command.*.model provider.*.models.*.id",
        _EFFORT: "agent.*.variant mode.*.variant",
        _MCP: "mcp experimental.mcp_timeout",
        _SKILLS: "skills",
        _TEXT: "instructions reference references",
        _FIXED: "autoupdate share autoshare snapshot enabled_providers disabled_providers permission "
        "agent.*.permission agent.*.steps agent.*.maxSteps mode.*.permission tools.webfetch tools.websearch "
        "agent.*.tools.web* mode.*.tools.web* mode.*.steps mode.*.maxSteps default_agent shell plugin server "
        "enterprise experimental.openTelemetry experimental.hook experimental.policies provider.*.options "
        "provider.*.api provider.*.npm provider.*.env provider.*.models.*.provider provider.*.models.*.headers "
        "providers agents plugins permissions lsp formatter",
    },
    "gemini": {
        _MODEL: "model.name modelConfigs.modelIdResolutions modelConfigs.classifierIdResolutions "
        "modelConfigs.modelChains modelConfigs.modelDefinitions modelConfigs.*liases.*.modelConfig.model "
        "modelConfigs.*liases.*.extends modelConfigs.*verrides.*.modelConfig.model "
        "agents.overrides.*.modelConfig.model general.plan.modelRouting experimental.gemma* "
        "experimental.dynamicModelConfiguration agents.browser.visualModel",
        _HOOKS: "hooks hooksConfig",
        _MCP: "mcp mcpServers",
        _SKILLS: "skills",
        _TEXT: "context.fileName context.includeDirectories context.loadMemoryFromIncludeDirectories "
        "context.discoveryMaxDirs context.memoryBoundaryMarkers experimental.autoMemory",
        "use max_turns: of the agent": "model.maxSessionTurns",
        "use options.max_retries": "general.retryFetchErrors general.maxAttempts",
        _FIXED: "security privacy telemetry admin ide advanced policyPaths adminPolicyPaths general.*AutoUpdate* "
        "general.defaultApprovalMode general.checkpointing general.devtools output tools.exclude tools.allowed "
        "tools.confirmationRequired tools.sandbox* tools.discoveryCommand tools.callCommand extensions billing "
        "agents.browser agents.overrides.*.runConfig experimental.extension* experimental.directWebFetch "
        "experimental.voice* experimental.worktrees "
        "modelConfigs.*.*.modelConfig.generateContentConfig.httpOptions",
    },
    "mini-swe-agent": {
        _MODEL: "model.model_name model.model_class model.model_kwargs.model model.model_kwargs.model_list "
        "model.model_kwargs.*fallback*",
        _EFFORT: "model.model_kwargs.reasoning_effort",
        "use max_turns: of the agent": "agent.step_limit",
        "use options.max_retries": "model.model_kwargs.*retries",
        "use options.command_timeout_s": "environment.timeout",
        _FIXED: "run agent.agent_class agent.cost_limit agent.output_path agent.mode agent.confirm_exit "
        "agent.whitelist_actions agent.wall_time_limit_seconds environment.environment_class environment.cwd "
        "model.litellm_model_registry model.cost_tracking model.model_kwargs.api_* model.model_kwargs.base_url "
        "model.model_kwargs.custom_llm_provider model.model_kwargs.extra_* model.model_kwargs.headers "
        "model.model_kwargs.mock_* model.model_kwargs.web_search_options model.model_kwargs.tools "
        "model.model_kwargs.functions model.model_kwargs.ssl_* model.model_kwargs.aws_* "
        "model.model_kwargs.azure_* model.model_kwargs.vertex_* model.model_kwargs.organization "
        "model.model_kwargs.deployment_id "
        "model.model_kwargs.*callback* model.model_kwargs.service_tier environment.env.HOME environment.env.PATH "
        "environment.env.LD_* environment.env.PYTHON* environment.env.GIT_* environment.env.*_PROXY "
        "environment.env.*_proxy environment.env.*_API_KEY environment.env.*_BASE*",
    },
}

# Of names that a program has by the hundred, below a reserved key: those that a campaign may choose all the same.
ALLOWED: dict[str, str] = {
    "claude-code": "env.BASH_DEFAULT_TIMEOUT_MS env.BASH_MAX_TIMEOUT_MS env.BASH_MAX_OUTPUT_LENGTH "
    "env.MAX_THINKING_TOKENS env.CLAUDE_CODE_MAX_OUTPUT_TOKENS env.CLAUDE_CODE_DISABLE_THINKING "
    "env.CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING env.DISABLE_INTERLEAVED_THINKING env.DISABLE_AUTO_COMPACT "
    "env.CLAUDE_AUTOCOMPACT_PCT_OVERRIDE env.CLAUDE_CODE_DISABLE_BACKGROUND_TASKS "
    "env.CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS env.MAX_MCP_OUTPUT_TOKENS env.SLASH_COMMAND_TOOL_CHAR_BUDGET",
    "codex": "features.apply_patch_freeform features.apply_patch_preserve_line_endings features.async_compaction "
    "features.code_mode features.code_mode_only features.context_management features.current_time_reminder "
    "features.js_repl features.personality features.shell_snapshot features.shell_tool features.token_budget "
    "features.unified_exec features.view_image",
}


def refuse_reserved(kind: str, chosen: Mapping[str, Any]) -> None:
    """Raises `OperatorError` naming the first key of `chosen` that no campaign may choose, with the way out."""
    for path in paths_of(chosen):
        way_out = reserved_way_out(kind, path)
        if way_out is not None:
            name = ".".join(path)
            raise OperatorError(
                f"settings.{name} of {kind} is not for a campaign to choose",
                where=f"agent: options.settings.{name}",
                hint=way_out,
            )


def reserved_way_out(kind: str, path: tuple[str, ...]) -> str | None:
    """What to use in place of a key that no campaign may choose; None: this one it may."""
    if ".".join(path) in ALLOWED.get(kind, "").split():
        return None
    for way_out, patterns in RESERVED.get(kind, {}).items():
        if any(_overlap(pattern.split("."), path) for pattern in patterns.split()):
            return way_out
    return None


def with_settings(chosen: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration file: what was chosen, and over it what no campaign may choose.

    >>> with_settings({"a": {"b": 1, "c": None}}, {"a": {"d": 2}})
    {'a': {'b': 1, 'd': 2}}
    """
    return merged(merged({}, chosen), fixed)


def paths_of(settings: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where the values are, those in lists by their number. A mapping without values says nothing.

    >>> [*paths_of({"a": {"b": 1, "c.d": [2, {"f": 3}]}, "e": {}, "g": []})]
    [('a', 'b'), ('a', 'c.d', '0'), ('a', 'c.d', '1', 'f'), ('g',)]
    """
    for name, value in settings.items():
        path = (*above, str(name))
        if isinstance(value, list) and value:
            value = dict(enumerate(cast("Sequence[Any]", value)))
        if isinstance(value, Mapping):
            yield from paths_of(cast("Mapping[str, Any]", value), path)
        else:
            yield path


def _overlap(pattern: list[str], path: tuple[str, ...]) -> bool:
    """Whether a value there is below the pattern, or in the place of what the pattern is below."""
    return all(fnmatchcase(name, part) for name, part in zip(path, pattern, strict=False))
