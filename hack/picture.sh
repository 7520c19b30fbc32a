#!/usr/bin/env bash
# Draws docs/images/the-loop.svg from the real thing: a session of the demo harness on a
# state directory of its own, asked one question.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d /tmp/loop-picture-XXXXXX)
assets=$(go run -C hack/controlplane .)
trap 'bin/the-loop down --state-dir "$dir/s" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
mkfifo "$dir/out"
HOME=$dir PATH=/usr/bin:/bin bin/the-loop up --state-dir "$dir/s" --tmux-socket "$dir/t/s" \
	--control-plane-dir "$assets" --host-name build-1 >"$dir/out" 2>/dev/null &
up=$!
grep -q '^Ready\.' "$dir/out"
export KUBECONFIG=$dir/s/control-plane/kubeconfig
PATH=$PATH:$assets
tmux -S "$dir/t/s" resize-window -t '=loop-standing-hello:' -x 108 -y 16
kubectl create -f config/samples/sessionmessage.yaml -o name | while read -r m; do
	kubectl wait "$m" --for=condition=Submitted --timeout=30s >/dev/null
done
kubectl wait standing/hello --for=jsonpath='{.status.activity.state}'=Idle --timeout=60s >/dev/null
{
	printf '\033[1m$ kubectl get standing,smsg\033[0m\n'
	kubectl get standing,smsg
	printf '\n\033[1m$ tmux -L the-loop attach -t =loop-standing-hello\033[0m\n'
	tmux -S "$dir/t/s" capture-pane -pe -t '=loop-standing-hello:'
} | go run ./hack/picture >docs/images/the-loop.svg
kill -INT $up && wait $up || true
