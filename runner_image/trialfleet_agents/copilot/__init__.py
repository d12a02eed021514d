"""GitHub Copilot CLI, offline: no GitHub, only the gateway."""

from trialfleet_agents.agent_kind import AgentFiles, AgentKind, SettingsRules
from trialfleet_agents.skill_faults import SkillFault
from trialfleet_agents.tool_calls import ToolCalls, call_reader, call_shell
from trialfleet_agents.ways_out import EFFORT, FIXED, HOOKS, MCP, MODEL, PRICE, SKILLS, TEXT
from trialfleet_deliveries.skills import SHARED_FOLDER

_RESERVED = {
    MODEL: "model autoTier continueOnAutoMode subagents.agents.*.model",
    EFFORT: "effortLevel reasoningEffort",
    HOOKS: "hooks disableAllHooks statusLine",
    MCP: "mcp* *McpServers",
    SKILLS: "skill*",
    TEXT: "memory",
    PRICE: "contextTier",
    FIXED: "experimental autoUpdate* allowedUrls deniedUrls proxy* bashEnv trustedFolders default* custom* "
    "ide permissions allowedTools deniedTools enabledPlugins extraKnownMarketplaces *oken* "
    "*oggedIn*",
}
COPILOT = AgentKind(
    kind="copilot",
    adapter="trialfleet_agents.copilot.agent:Copilot",
    files=AgentFiles(
        roots=("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"),
        skills=SHARED_FOLDER,
        names=(".agents", ".copilot"),
        folders=(
            *(".github/agents", ".github/copilot", ".github/extensions", ".github/hooks", ".github/instructions"),
            *(".github/lsp.json", ".github/mcp.json", ".github/plugin", ".github/skills"),
            ".claude/commands",  # listed among its skills
        ),
        home=(".copilot/copilot-instructions.md",),
        settings=(
            ".github/copilot/settings.json",
            ".github/copilot/settings.local.json",
            ".copilot/settings.json",
        ),
        left_out=(
            *(".mcp.json", ".github/mcp.json", ".github/lsp.json"),
            *(".github/extensions/*", ".github/hooks/*", ".github/plugin/*"),
        ),
        refused_skills=(
            SkillFault.NO_FRONT_MATTER,
            SkillFault.COLON,
            SkillFault.UNQUOTED,
            SkillFault.INVALID,
            SkillFault.DUPLICATE,
            SkillFault.NOT_TEXT,
            SkillFault.LONG,
        ),
        subagents=".github/agents",
        refused_subagents=(
            *(SkillFault.NO_FRONT_MATTER, SkillFault.COLON, SkillFault.UNQUOTED, SkillFault.INVALID),
            *(SkillFault.DUPLICATE, SkillFault.NOT_TEXT, SkillFault.NO_DESCRIPTION),
        ),
    ),
    rules=SettingsRules(
        reserved=_RESERVED,
        in_files="$schema banner theme renderMarkdown includeCoAuthoredBy",
    ),
    tool_calls=ToolCalls(model="gpt-5.5", read=call_reader("view", "path"), run=call_shell("bash")),
    provider="openai",
)
