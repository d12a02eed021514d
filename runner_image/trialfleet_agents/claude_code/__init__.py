"""Claude Code: the real command line program, isolated, behind the gateway."""

from trialfleet_agents.agent_kind import AgentFiles, AgentKind, SettingsRules
from trialfleet_agents.skill_faults import SkillFault
from trialfleet_agents.tool_calls import ToolCalls, call_reader, call_shell
from trialfleet_agents.ways_out import EFFORT, FIXED, HOOKS, MCP, MODEL, PRICE, TEXT

_RESERVED = {
    f"{HOOKS}, or put .claude/settings.json in a context": "hooks disableAllHooks statusLine",
    MODEL: "model *Model *Models modelOverrides modelPicker modelCatalogUrl switchModelsOnFlag "
    "env.ANTHROPIC_*MODEL* env.CLAUDE_CODE_SUBAGENT_MODEL",
    EFFORT: "effortLevel maxEffortLevel ultracode env.CLAUDE_CODE_EFFORT_LEVEL",
    MCP: "mcpServers enableAllProjectMcpServers *McpjsonServers *McpServers* *ClaudeAi*",
    TEXT: "claudeMd claudeMdExcludes autoMemory* autoDream* companyAnnouncements",
    PRICE: "fastMode* modelPricing",
    FIXED: "apiKeyHelper proxyAuthHelper policyHelper* processWrapper xaaIdp aws* gcp* gateway* force* otel* "
    "permissions sandbox autoUpdates* extraKnownMarketplaces downloadsMirrorUrl required*Version "
    "minimumVersion prependPlugins appendPlugins pluginConfigs remote* autoUploadSessions sshConfigs "
    "crossSessionInbound allowManaged* env",
}
_ALLOWED = (
    "env.BASH_DEFAULT_TIMEOUT_MS env.BASH_MAX_TIMEOUT_MS env.BASH_MAX_OUTPUT_LENGTH "
    "env.MAX_THINKING_TOKENS env.CLAUDE_CODE_MAX_OUTPUT_TOKENS env.CLAUDE_CODE_DISABLE_THINKING "
    "env.CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING env.DISABLE_INTERLEAVED_THINKING env.DISABLE_AUTO_COMPACT "
    "env.CLAUDE_AUTOCOMPACT_PCT_OVERRIDE env.CLAUDE_CODE_DISABLE_BACKGROUND_TASKS "
    "env.CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS env.MAX_MCP_OUTPUT_TOKENS env.SLASH_COMMAND_TOOL_CHAR_BUDGET"
)
CLAUDE_CODE = AgentKind(
    kind="claude-code",
    adapter="trialfleet_agents.claude_code.agent:ClaudeCode",
    files=AgentFiles(
        roots=("CLAUDE.md",),
        skills=".claude/skills",
        names=("claude.local.md", "CLAUDE*.[mM][dD]", ".claude", ".claude.json", ".mcp.json"),
        home=(".claude/CLAUDE.md", "CLAUDE.md"),
        settings=(".claude/settings.json", ".claude/settings.local.json"),
        refused_skills=(SkillFault.NO_FRONT_MATTER, SkillFault.INVALID, SkillFault.NOT_TEXT),
        subagents=".claude/agents",
        refused_subagents=(
            *(SkillFault.NO_FRONT_MATTER, SkillFault.INVALID, SkillFault.NOT_TEXT),
            *(SkillFault.NO_NAME, SkillFault.NO_DESCRIPTION),
        ),
        nested_characters=40_000,
    ),
    rules=SettingsRules(
        reserved=_RESERVED,
        allowed=_ALLOWED,
        in_files="$schema hooks statusLine outputStyle language attribution includeCoAuthoredBy spinnerTips* "
        "enabledPlugins.agents-md@builtin",
    ),
    tool_calls=ToolCalls(
        model="claude-sonnet-4-6",
        read=call_reader("Read", "file_path"),
        run=call_shell("Bash"),
    ),
    side_models=("claude-haiku-*", "claude-3-5-haiku*"),
    writes_prose=True,
)
