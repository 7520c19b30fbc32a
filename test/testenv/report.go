package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// reportLimit bounds what is shown of one file: its end.
const reportLimit = 32 << 10

// report shows what a person would look at after a failure.
func (h *Host) report(ctx context.Context) {
	snap, err := h.Server.Snapshot(ctx)
	if err != nil {
		AddReportEntry("the terminal server of "+h.Name, err.Error())
	}
	for _, s := range snap.Sessions {
		AddReportEntry("screen of "+s.Name, strings.TrimRight(h.Screen(s.Name), "\n"))
	}
	var standing api.StandingSessionList
	var items api.WorkItemSessionList
	var messages api.SessionMessageList
	for _, list := range []client.ObjectList{&standing, &items, &messages} {
		if err := h.Client.List(ctx, list, client.InNamespace(h.Namespace)); err != nil {
			AddReportEntry("objects of "+h.Name, err.Error())
		}
	}
	for i := range standing.Items {
		AddReportEntry("object", describe(&standing.Items[i]))
	}
	for i := range items.Items {
		AddReportEntry("object", describe(&items.Items[i]))
	}
	for _, m := range messages.Items {
		AddReportEntry("message "+m.Name, fmt.Sprintf("for %s\n%s", m.Spec.SessionRef.Name, indented(m.Status)))
	}
	for _, pattern := range append([]string{"agent/*/*/*.jsonl", "agent/*/*.jsonl"}, h.Evidence...) {
		files, _ := filepath.Glob(filepath.Join(h.Dir, pattern))
		for _, f := range files {
			b, _ := os.ReadFile(f)
			AddReportEntry(f, string(b[max(0, len(b)-reportLimit):]))
		}
	}
}
