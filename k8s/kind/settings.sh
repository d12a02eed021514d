# What k8s/kind/up and k8s/kind/down have in common, sourced by both: the cluster's name, its files, how to look at it.
#   KIND_CLUSTER                 its name [trialfleet]
#   KIND_EXPERIMENTAL_PROVIDER   docker or podman [docker, if it is installed]
# shellcheck shell=bash disable=SC2034 # used by the two
cluster=${KIND_CLUSTER:-trialfleet}
if ! [[ $cluster =~ ^[a-z0-9][a-z0-9.-]{0,49}$ ]]; then
  echo "KIND_CLUSTER=$cluster is not a name: a-z, 0-9, '.' and '-', at most 50 characters" >&2
  exit 2
fi
files=.kind/$cluster # .env: the store's keys; .yaml: the demo; .log; .creating: there while kind creates the cluster
up="make kind-up" down="make kind-down" named=KIND_CLUSTER=
[ -z "${TRIALFLEET_PROGRAM:-}" ] || up="trialfleet kind up" down="trialfleet kind down" named="--name "
[ "$cluster" = trialfleet ] || up+=" $named$cluster" down+=" $named$cluster"

engine=${KIND_EXPERIMENTAL_PROVIDER:-docker}
if [ -z "${KIND_EXPERIMENTAL_PROVIDER:-}" ] && [[ $(docker --version 2>/dev/null) != "Docker version"* ]]; then
  export KIND_EXPERIMENTAL_PROVIDER=podman
  engine=podman
fi

say() { echo "kind-${0##*/}: $*" >&2; }
on_cluster() { kubectl --context "kind-$cluster" "$@"; }

cluster_exists() {
  clusters=$(kind get clusters) || exit 2
  grep -qxF -- "$cluster" <<<"$clusters"
}

# One at a time for a cluster, from any checkout. What the two start holds the lock too, so that it is free when all of
# that has ended.
locks=${XDG_CACHE_HOME:-$HOME/.cache}
mkdir -p "$locks"
exec 9>>"$locks/trialfleet-kind-$cluster.lock"
flock -n 9 || { say "another kind-up or kind-down of $cluster is at work: waiting for its end"; flock 9; }
