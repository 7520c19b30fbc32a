package session

import (
	"time"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// endpointsFirst lets the sessions of the item's pull requests end before its own.
func (in Input) endpointsFirst(what string) Plan {
	return in.wait(api.ReasonStopping, "waits for the sessions of the item's pull requests to be "+what+": "+in.EndpointsLeft, unknownRequeue)
}

// stop ends the harness, then retains or closes the terminal session.
func (in Input) stop() Plan {
	if in.Desired == DesiredDeleted && in.EndpointsLeft != "" {
		return in.endpointsFirst("let go")
	}
	switch in.Holder {
	case HolderLiveOurs:
		if in.adoptFirst() {
			return in.act(ActionAdopt, api.ReasonStopping, "a live session of ours is taken into the record to be ended")
		}
		if in.retained() && !in.KillHarness && in.StopRequested.IsZero() {
			return in.closed("the terminal session is retained with its harness running, as the class says")
		}
		return in.terminate("the harness is being ended")
	case HolderShared:
		// No sweep: it would end what runs in the person's pane.
		return in.closed("the harness has ended; a pane that a person opened keeps the terminal session")
	case HolderDeadOurs:
		if !in.Swept {
			return in.act(ActionSweep, api.ReasonStopping, "ending what the harness left behind")
		}
		if !in.retained() {
			return in.act(ActionKillSession, api.ReasonStopping, "closing the terminal session")
		}
		return in.closed("the terminal session is retained to be read")
	case HolderAbsent:
		if in.sweepDue() {
			return in.act(ActionSweep, api.ReasonStopping, "ending what the harness left behind")
		}
		return in.closed("there is no terminal session")
	}
	return in.closed("the terminal session of this name is not ours and is left alone: " + in.HolderDetail)
}

// park ends the harness of a session that is to run, for as long as its host is being
// drained. That it was asked to end stays on record, and is the reason to start it again
// afterwards: what had ended by itself before is not started by that. Everything else is
// kept: the conversation, the terminal to be read, the checkout, the messages.
func (in Input) park() Plan {
	switch in.Holder {
	case HolderLiveOurs:
		if in.StopRequested.IsZero() && (in.Unrecorded || in.Closed) {
			return in.act(ActionAdopt, api.ReasonStopping, "a live session of ours is taken into the record to be parked")
		}
		return in.terminate("the harness is being ended, because the host is being drained")
	case HolderDeadOurs:
		if !in.Swept {
			return in.act(ActionSweep, api.ReasonStopping, "ending what the harness left behind")
		}
	case HolderAbsent:
		if in.sweepDue() {
			return in.act(ActionSweep, api.ReasonStopping, "ending what the harness left behind")
		}
	}
	return in.wait(api.ReasonHostDraining, "spec.scheduling of the session's SessionHost is Draining, so nothing runs there: the session goes on by itself, "+
		"with its conversation and the messages that wait, when that is Enabled again", 0)
}

// retained reports whether a terminal session that nobody needs any more is kept.
func (in Input) retained() bool {
	return in.KeepSession && (!in.Closed || in.RetainUntil.IsZero() || until(in.Now, in.RetainUntil) > 0)
}

// closed ends stop: the stop is recorded, the checkout is removed, the object is let go.
// A checkout in which something of ours or of a person's may still work is left alone.
func (in Input) closed(why string) Plan {
	if in.Desired == DesiredStopped && !in.Closed {
		return in.act(ActionClose, api.ReasonStopped, why)
	}
	if in.RemoveCheckout && in.Holder != HolderLiveOurs && in.Holder != HolderShared {
		return in.removeCheckout()
	}
	if in.Desired == DesiredDeleted {
		return in.act(ActionRelease, api.ReasonStopped, why)
	}
	if in.Transcript != "" {
		why += "; the whole conversation is in " + in.Transcript // of which a terminal keeps a part (T14)
	}
	p := in.wait(api.ReasonStopped, why, 0)
	if in.Holder == HolderDeadOurs || in.Holder == HolderLiveOurs {
		p.Requeue = until(in.Now, in.RetainUntil)
	}
	p.Messages = MessagesRefuse
	return p
}

// removeCheckout removes the checkout, again and again where that fails: what is not kept
// of it is lost, so nothing goes on without it.
func (in Input) removeCheckout() Plan {
	if in.RemovalProblem != "" {
		p := in.wait(api.ReasonCheckoutKept, "the checkout is still there: "+in.RemovalProblem, unknownRequeue)
		p.Messages = MessagesRefuse
		return p
	}
	return in.act(ActionRemoveCheckout, api.ReasonStopping, "removing the checkout")
}

// cleanUp ends everything on the host, endpoints first, our own session last.
func (in Input) cleanUp() Plan {
	if in.EndpointsLeft != "" {
		return in.endpointsFirst("cleaned up")
	}
	switch in.Holder {
	case HolderLiveOurs:
		if in.adoptFirst() {
			return in.act(ActionAdopt, api.ReasonStopping, "a live session of ours is taken into the record to be ended")
		}
		return in.terminate("the harness is being ended")
	case HolderShared:
		if !in.Force {
			return in.wait(api.ReasonOccupied, "the harness has ended, and a pane that a person opened lives in its terminal session: close it, or set the annotation "+
				api.ForceCleanupAnnotation+"=true to end it, with all that is not saved in it", unknownRequeue)
		}
		return in.act(ActionKillSession, api.ReasonStopping, "closing the terminal session")
	case HolderDeadOurs:
		return in.act(ActionKillSession, api.ReasonStopping, "closing the terminal session")
	}
	if in.sweepDue() {
		return in.act(ActionSweep, api.ReasonStopping, "ending what the harness left behind")
	}
	if in.RemoveCheckout {
		return in.removeCheckout()
	}
	// A session that was stopped before is closed, and still has its record of the host.
	if !in.Closed || in.Started || in.Intended {
		return in.act(ActionCleanUp, api.ReasonStopping, "removing what is left on the host")
	}
	p := in.wait(api.ReasonCleanedUp, "everything on the host was removed", 0)
	p.Messages = MessagesRefuse
	return p
}

// adoptFirst reports that a live session is to be taken into the record before it is
// ended: one that lost its stamp cannot be ended without it.
func (in Input) adoptFirst() bool { return in.Unrecorded && in.StopRequested.IsZero() }

// terminate asks the harness to end, waits for the grace period, then kills it. Where
// the clock jumped back behind the asking, it asks again: the grace must not be as
// long as the jump.
func (in Input) terminate(why string) Plan {
	if in.StopRequested.IsZero() || in.StopRequested.Sub(in.Now) > clockJump {
		return in.act(ActionTerminate, api.ReasonStopping, why)
	}
	if left := until(in.Now, in.StopRequested.Add(in.Grace)); left > 0 {
		return in.wait(api.ReasonStopping, why+"; it is killed at "+in.StopRequested.Add(in.Grace).UTC().Format(time.RFC3339), left)
	}
	p := in.act(ActionKill, api.ReasonStopping, why+"; it did not end by itself")
	p.Requeue = killRequeue
	return p
}
