package hub

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Ready summarises a session: True when what is wanted is so, else the reason and the
// message of the most important thing in the way. It is pure.
func Ready(obj api.HostedSession) metav1.Condition {
	conditions := obj.HostedStatus().Conditions
	for _, kind := range []string{api.ConditionScheduled, api.ConditionHostAvailable} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return metav1.Condition{Status: c.Status, Reason: c.Reason, Message: c.Message}
		}
	}
	running := meta.FindStatusCondition(conditions, api.ConditionSessionRunning)
	if running == nil || running.ObservedGeneration != obj.GetGeneration() {
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: api.ReasonReconciling, Message: "the host has not looked at the newest version of the session yet"}
	}
	if obj.GetDeletionTimestamp() != nil {
		return blocked(running, metav1.ConditionFalse)
	}
	switch obj.WantedState() {
	case api.SessionStateStopped:
		return whenReason(running, api.ReasonStopped)
	case api.SessionStateCleanedUp:
		return whenReason(running, api.ReasonCleanedUp)
	}
	if c := meta.FindStatusCondition(conditions, api.ConditionWorkspaceReady); c != nil && c.Status == metav1.ConditionFalse && running.Status != metav1.ConditionTrue {
		return blocked(c, metav1.ConditionFalse)
	}
	if running.Status != metav1.ConditionTrue || running.Reason != api.ReasonRunning {
		return blocked(running, notTrue(running.Status))
	}
	if in := meta.FindStatusCondition(conditions, api.ConditionAcceptingInput); in != nil && (in.Reason == api.ReasonStarting || in.Reason == api.ReasonNotReady) {
		return blocked(in, metav1.ConditionFalse)
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: running.Reason, Message: running.Message}
}

func blocked(by *metav1.Condition, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Status: status, Reason: by.Reason, Message: by.Message}
}

// whenReason is True when the session has come to rest as wanted.
func whenReason(c *metav1.Condition, reason string) metav1.Condition {
	if c.Reason == reason {
		return blocked(c, metav1.ConditionTrue)
	}
	return blocked(c, notTrue(c.Status))
}

// notTrue keeps what is unknown unknown.
func notTrue(s metav1.ConditionStatus) metav1.ConditionStatus {
	if s == metav1.ConditionUnknown {
		return s
	}
	return metav1.ConditionFalse
}
