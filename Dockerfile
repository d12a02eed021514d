# The images of pods. Targets: runner (one attempt; default) and controller. `trialfleet image build` calls this.
#
#   BASE           what runner and tasks stand on: Debian 12 or newer, or a derivative, with what the tasks' tests
#                  need of the system
#   AGENTS         agents of pinned.tsv to install, separated by spaces: codex, or codex@VERSION. Empty: those built in
#   BAKE_PACKAGES  Debian packages that task environments need to be built, such as build-essential; not in the
#                  final image
#   TOOL_PACKAGES  Debian packages that tasks in other languages than Python need; `trialfleet image build` finds them
ARG BASE=debian:bookworm-slim

# --- what every stage and both images have ------------------------------------------------------------
FROM ${BASE} AS base
USER root
RUN set -eu; apt-get update -qq; \
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends ca-certificates python3 >/dev/null; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/apt /var/log/dpkg.log; \
    /usr/bin/python3 -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "BASE has an older Python than 3.11")'; \
    echo 'trialfleet:x:65532:65532:trialfleet:/tmp:/usr/sbin/nologin' >>/etc/passwd; \
    echo 'trialfleet:x:65532:' >>/etc/group
ENV LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1

# --- git, which attempts and tasks need and a controller does not -------------------------------------
FROM base AS task-base
RUN set -eu; apt-get update -qq; \
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends git >/dev/null; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/apt /var/log/dpkg.log

# --- tools that stay behind ---------------------------------------------------------------------------
FROM base AS build
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
RUN set -eu; apt-get update -qq; \
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends binutils python3-venv >/dev/null
WORKDIR /build
COPY requirements/uv.txt requirements/build.txt requirements/
RUN set -eu; /usr/bin/python3 -m venv /opt/build; \
    /opt/build/bin/pip install -q --disable-pip-version-check --no-cache-dir --require-hashes \
      -r requirements/uv.txt -r requirements/build.txt
# Modules never change in an image: their bytecode is taken without a look at the source. It is compiled once, after
# omit.py has removed what no image needs.
ENV PATH=/opt/build/bin:$PATH UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy \
    COMPILE="/opt/trialfleet/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash"
COPY requirements/omit.py requirements/

# --- the runner, apart from anything of a task's ------------------------------------------------------
FROM build AS runner-home
COPY requirements/runner.txt requirements/runner.omitted.tsv requirements/
RUN --mount=type=cache,target=/root/.cache/uv \
    set -eu; uv venv -q --python /usr/bin/python3 /opt/trialfleet; \
    uv pip install -q --python /opt/trialfleet/bin/python --no-deps --require-hashes -r requirements/runner.txt; \
    /usr/bin/python3 requirements/omit.py requirements/runner.omitted.tsv /opt/trialfleet/lib/python3*/site-packages; \
    $COMPILE /opt/trialfleet/lib
# The other packages stay out: the image's id, which campaigns pin, changes with the runner alone.
COPY Dockerfile pyproject.toml ./
COPY runner_image runner_image
RUN --mount=type=cache,target=/root/.cache/uv \
    set -eu; touch README.md; hatchling build -t wheel -d dist; \
    uv pip install -q --python /opt/trialfleet/bin/python --no-deps dist/*.whl; \
    rm -r /opt/trialfleet/lib/python3*/site-packages/trialfleet_share; \
    sed -i '/^trialfleet_share/d' /opt/trialfleet/lib/python3*/site-packages/trialfleet-*.dist-info/RECORD; \
    $COMPILE /opt/trialfleet/lib/python3*/site-packages/trialfleet_*; \
    rm /opt/trialfleet/.lock; \
    ln -s /opt/trialfleet/lib/python3*/site-packages/trialfleet_sandbox/supervise.py /opt/trialfleet/supervise.py

# --- the tasks' toolchains ----------------------------------------------------------------------------
# requirements/toolchains and environments.json are there when `trialfleet image build --for …` wrote them
FROM base AS toolchain-files
COPY requirements/ requirements/
RUN set -eu; cd requirements; mkdir -p toolchains/bin recipes; \
    for made in environments.json trees; do if [ -e $made ]; then mv $made recipes; fi; done

FROM task-base AS toolchains
ARG TOOL_PACKAGES=""
RUN set -eu; if [ -n "$TOOL_PACKAGES" ]; then apt-get update -qq; \
      DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $TOOL_PACKAGES >/dev/null; \
      rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/apt /var/log/dpkg.log; \
    fi
COPY --from=toolchain-files /requirements/toolchains /opt/trialfleet-toolchains
ENV PATH=/opt/trialfleet-toolchains/bin:$PATH

# --- the agents ---------------------------------------------------------------------------------------
FROM task-base AS agents
ARG AGENTS=""
COPY runner_image/trialfleet_agents/pinned.tsv runner_image/trialfleet_agents/install.sh /opt/install/
RUN set -eu; mkdir -p /opt/trialfleet-agents/bin; \
    if [ -n "$AGENTS" ]; then \
      apt-get update -qq; \
      DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends npm python3-venv >/dev/null; \
      sh /opt/install/install.sh /opt/trialfleet-agents $AGENTS; \
      # one self-contained program; the platform's package is a second copy of it
      rm -rf /opt/trialfleet-agents/claude-code/node_modules/@anthropic-ai/claude-code-*; \
      for program in /opt/trialfleet-agents/bin/*; do HOME=/tmp "$program" --help >/dev/null; done; \
    fi

# --- the tasks' environments --------------------------------------------------------------------------
FROM toolchains AS environments
ARG BAKE_PACKAGES=""
RUN set -eu; if [ -n "$BAKE_PACKAGES" ]; then apt-get update -qq; \
      DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $BAKE_PACKAGES >/dev/null; \
    fi
COPY --from=build /opt/build /opt/build
COPY --from=runner-home /opt/trialfleet /opt/trialfleet
ENV PATH=/opt/build/bin:$PATH SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    PYC_INVALIDATION_MODE=UNCHECKED_HASH UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy \
    TRIALFLEET_BAKED=/opt/trialfleet-environments
WORKDIR /build
COPY --from=toolchain-files /requirements/recipes requirements/
RUN --mount=type=cache,target=/root/.cache/uv \
    set -eu; mkdir -p $TRIALFLEET_BAKED; \
    if [ -e requirements/environments.json ]; then /opt/trialfleet/bin/trialfleet-pod bake requirements/environments.json; fi

# --- targets ------------------------------------------------------------------------------------------
FROM build AS controller-home
COPY requirements/controller.txt requirements/controller.omitted.tsv requirements/
RUN --mount=type=cache,target=/root/.cache/uv \
    set -eu; uv venv -q --python /usr/bin/python3 /opt/trialfleet; \
    uv pip install -q --python /opt/trialfleet/bin/python --no-deps --require-hashes -r requirements/controller.txt; \
    /usr/bin/python3 requirements/omit.py requirements/controller.omitted.tsv /opt/trialfleet/lib/python3*/site-packages; \
    $COMPILE /opt/trialfleet/lib
COPY Dockerfile pyproject.toml ./
COPY runner_image runner_image
COPY tasks/trialfleet_tasks tasks/trialfleet_tasks
COPY controller controller
COPY analysis/trialfleet_statistics analysis/trialfleet_statistics
COPY analysis/trialfleet_designs analysis/trialfleet_designs
RUN --mount=type=cache,target=/root/.cache/uv \
    set -eu; touch README.md; hatchling build -t wheel -d dist; \
    uv pip install -q --python /opt/trialfleet/bin/python --no-deps dist/*.whl; \
    rm -r /opt/trialfleet/lib/python3*/site-packages/trialfleet_share; \
    sed -i '/^trialfleet_share/d' /opt/trialfleet/lib/python3*/site-packages/trialfleet-*.dist-info/RECORD; \
    $COMPILE /opt/trialfleet/lib/python3*/site-packages/trialfleet_*

# Nothing of it is in the image but the proof: what the controller runs works without what omit.py removed.
FROM base AS controller-checked
COPY --from=controller-home /opt/trialfleet /opt/trialfleet
USER 65532:65532
RUN HOME=/tmp RAY_metrics_report_interval_ms=1000 \
    /opt/trialfleet/bin/python -m trialfleet_controller.images.controller_check

FROM base AS controller
COPY --from=controller-checked /opt/trialfleet /opt/trialfleet
ENV PATH=/opt/trialfleet/bin:$PATH
USER 65532:65532
WORKDIR /tmp
CMD ["trialfleet", "--help"]

FROM toolchains AS runner
# pydantic looks through every installed package for plugins of its own, of which there are none
ENV PYDANTIC_DISABLE_PLUGINS=__all__
COPY --from=agents /opt/trialfleet-agents /opt/trialfleet-agents
COPY --from=environments /opt/trialfleet-environments /opt/trialfleet-environments
COPY --from=runner-home /opt/trialfleet /opt/trialfleet
ENV PATH=/opt/trialfleet/bin:/opt/trialfleet-agents/bin:$PATH \
    TRIALFLEET_BAKED=/opt/trialfleet-environments
# Each pod runs as a uid of its own (kubernetes.uids, by default these). Without a name for it, git commits nothing and
# Node's os.userInfo() throws.
RUN seq -f 'trialfleet:x:%.0f:65532:trialfleet:/tmp:/usr/sbin/nologin' 70000 74095 >>/etc/passwd
USER 65532:65532
WORKDIR /tmp
CMD ["trialfleet-pod", "run"]
