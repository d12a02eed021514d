#!/bin/sh
# install.sh FOLDER KIND[@VERSION] …: installs agents of pinned.tsv, each into FOLDER/KIND, with a link in FOLDER/bin to its
# program. What is there in that version is left alone. npm and Python 3 with venv must be on this machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift

row() { awk -F '\t' -v kind="$1" '$1 == kind { print $2, $3, $4, $5, $6 }' "$here/pinned.tsv"; }

for agent; do
  kind=${agent%%@*}
  # shellcheck disable=SC2046 # words
  set -- $(row "$kind")
  if [ $# -lt 4 ]; then
    echo "unknown agent: $kind (known: $(awk -F '\t' '!/^#/ { printf "%s%s", gap, $1; gap = ", " }' "$here/pinned.tsv"))" >&2
    exit 2
  fi
  installer=$1 package=$2 version=$3 program=$4 home=$folder/$kind
  shift 4
  case $agent in *@*) version=${agent#*@} ;; esac
  if [ "$(cat "$home/.installed" 2>/dev/null)" != "$package $version${*:+ $*}" ]; then
    if [ -n "$(ls -A "$home" 2>/dev/null)" ] && [ ! -e "$home/.installed" ]; then
      echo "$home: not a folder that this script made; fix: move it away, or give another FOLDER" >&2
      exit 2
    fi
    mkdir -p "$home" "$folder/bin"
    : >"$home/.installed" # begun; it stays while the rest goes
    find "$home" -mindepth 1 -maxdepth 1 ! -name .installed -exec rm -rf {} +
    case $installer in
      npm) npm install --silent --no-audit --no-fund --prefix "$home" "$package@$version" ;;
      pip) python3 -m venv "$home" && "$home/bin/pip" install -q --disable-pip-version-check "$package==$version" "$@" ;;
    esac
    if [ "$kind" = copilot ]; then # once here, not 235 MB into the HOME of every attempt
      COPILOT_SEA_EXTRACT_ONLY=1 COPILOT_PKG_CACHE_HOME=$home/unpacked "$home/node_modules/.bin/copilot" --version
    fi
    echo "$package $version${*:+ $*}" >"$home/.installed"
  fi
  case $installer in npm) bin=node_modules/.bin ;; pip) bin=bin ;; esac
  ln -sfn "../$kind/$bin/$program" "$folder/bin/$program"
done
