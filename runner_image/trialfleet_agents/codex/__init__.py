"""Codex."""

from trialfleet_agents.agent_kind import AgentFiles, AgentKind, SettingsRules
from trialfleet_agents.skill_faults import SkillFault
from trialfleet_agents.tool_calls import Call, ToolCalls
from trialfleet_agents.ways_out import EFFORT, FIXED, HOOKS, MCP, MODEL, PRICE, SKILLS, TEXT
from trialfleet_deliveries.skills import SHARED_FOLDER

_RESERVED = {
    MODEL: "model review_model model_catalog_json oss_provider profile profiles agents auto_review",
    EFFORT: "model_reasoning_effort plan_mode_reasoning_effort",
    HOOKS: "hooks notify",
    MCP: "mcp_*",
    SKILLS: "skills",
    TEXT: "developer_instructions instructions *instructions_file project_doc_* project_root_markers "
    "memories experimental_compact_prompt_file",
    PRICE: "service_tier",
    FIXED: "model_provider model_providers *base_url web_search tools.web_search analytics feedback otel "
    "check_for_update_on_startup allow_login_shell approval* sandbox_* default_permissions permissions "
    "shell_environment_policy cli_auth_* forced_* history log_dir sqlite_home plugins apps marketplaces "
    "projects experimental_thread_* experimental_realtime_* realtime debug tool_suggest js_repl_node_path "
    "features",
}
_ALLOWED = (
    "features.apply_patch_freeform features.apply_patch_preserve_line_endings features.async_compaction "
    "features.code_mode features.code_mode_only features.context_management features.current_time_reminder "
    "features.js_repl features.personality features.shell_snapshot features.shell_tool features.token_budget "
    "features.unified_exec features.view_image project_doc_max_bytes"
)
CODEX = AgentKind(
    kind="codex",
    adapter="trialfleet_agents.codex.agent:Codex",
    files=AgentFiles(
        roots=("AGENTS.md",),
        skills=SHARED_FOLDER,
        names=("agents.override.md", ".agents", ".codex"),
        home=(".codex/AGENTS.md", "AGENTS.md"),
        left_out=(
            *(".codex/config.toml", ".codex/hooks.json", ".codex/.env"),
            *(".codex/agents/*.toml", ".codex/hooks/*", ".codex/rules/*"),
        ),
        refused_skills=(
            SkillFault.BYTE_ORDER_MARK,
            SkillFault.NO_FRONT_MATTER,
            SkillFault.INVALID,
            SkillFault.DUPLICATE,
            SkillFault.NO_DESCRIPTION,
            SkillFault.NOT_TEXT,
        ),
        root_bytes=32 * 1024,
        root_bytes_setting="project_doc_max_bytes",
    ),
    rules=SettingsRules(
        reserved=_RESERVED,
        allowed=_ALLOWED,
    ),
    tool_calls=ToolCalls(
        model="gpt-5.5",
        read=lambda path: Call("exec_command", {"cmd": f"cat {path}"}),
        run=lambda command: Call("exec_command", {"cmd": command, "yield_time_ms": 20_000}),
    ),
    provider="openai",
)
