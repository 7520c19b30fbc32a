package kinds

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// P45: a message that an earlier object of the name may have typed is not typed by the next.
func TestIsForThisVeryObject(t *testing.T) {
	owner := func(kind, version string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "fox", UID: uid}}
	}
	ours := api.GroupVersion.String()
	for name, c := range map[string]struct {
		asked, took types.UID
		owners      []metav1.OwnerReference
		want        bool
	}{
		"nobody yet":                       {want: true},
		"asked for":                        {asked: "new", want: true},
		"another asked for":                {asked: "old"},
		"taken":                            {took: "new", want: true},
		"taken by another":                 {took: "old"},
		"handed to it":                     {owners: owner(api.KindStandingSession, ours, "new"), want: true},
		"handed to an earlier one":         {owners: owner(api.KindStandingSession, ours, "old")},
		"owned by something else":          {owners: owner("ConfigMap", "v1", "x"), want: true},
		"owned by a namesake of its kind":  {owners: owner(api.KindStandingSession, "example.com/v1", "x"), want: true},
		"asked for, but taken by another":  {asked: "new", took: "old"},
		"asked for, but handed to another": {asked: "new", owners: owner(api.KindStandingSession, ours, "old")},
		"handed to one of the other kind":  {owners: owner(api.KindWorkItemSession, ours, "x"), want: true},
	} {
		m := &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{OwnerReferences: c.owners}}
		m.Spec.SessionRef.UID, m.Status.SessionUID = c.asked, c.took
		s := &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Name: "fox", UID: "new"}}
		if got := IsFor(m, s); got != c.want {
			t.Errorf("a message that is %s: IsFor is %t, want %t", name, got, c.want)
		}
	}
}

func TestTrimKeepsTheTextsThatAreTyped(t *testing.T) {
	for outcome, want := range map[api.MessageOutcome]string{"": "text", api.OutcomeQueued: "text", api.OutcomeHeld: "text", api.OutcomeSubmitted: "", api.OutcomeUnknown: ""} {
		m := &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Name: "m", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}}
		m.Spec.Text, m.Status.Outcome = "text", outcome
		got, err := Trim(m)
		if err != nil || got != any(m) || m.Spec.Text != want || m.ManagedFields != nil || m.Name != "m" {
			t.Errorf("of a message that is %q the cache keeps %+v (%v), want the text %q and no managed fields", outcome, m, err, want)
		}
	}
	if got, err := Trim("what is gone"); got != "what is gone" || err != nil {
		t.Errorf("Trim of another thing is %v, %v", got, err)
	}
}
