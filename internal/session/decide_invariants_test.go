package session_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/session"
)

// invariant is a rule that holds for every plan, whatever the inputs. broken says how
// it is broken, "" when it is not.
type invariant struct {
	name   string
	broken func(in *input, p *plan) string
}

// must makes an invariant of an implication: where applies, holds has to be.
func must(name string, applies, holds func(in *input, p *plan) bool) invariant {
	return invariant{name, func(in *input, p *plan) string {
		if applies(in, p) && !holds(in, p) {
			return name
		}
		return ""
	}}
}

type (
	input = session.Input
	plan  = session.Plan
)

// does reports whether a plan is one of the actions.
func does(actions ...session.Action) func(*input, *plan) bool {
	return func(_ *input, p *plan) bool {
		for _, a := range actions {
			if p.Action == a {
				return true
			}
		}
		return false
	}
}

func always(*input, *plan) bool { return true }

// startsSomething are the actions that lead to a start.
var startsSomething = does(session.ActionSpawn, session.ActionClear, session.ActionSweep, session.ActionPrepareCheckout, session.ActionCompare, session.ActionAsk)

func running(in *input) bool { return in.Desired == session.DesiredRunning }

// parked reports that a session is to run on a host that is being drained.
func parked(in *input) bool { return in.Desired == session.DesiredParked }

// wantedAnew reports whether somebody asked for a start: it does not depend on the
// restart policy then.
func wantedAnew(in *input) bool {
	return !in.Started || in.Intended || in.Closed || in.RestartRequested || !in.StopRequested.IsZero() || failed(in)
}

// failed reports that the newest launch was a resume whose harness ended by itself.
func failed(in *input) bool {
	return in.Resume == session.ResumePending && in.ResumeRefuted && in.StopRequested.IsZero() && !in.Closed
}

func messageWaits(in *input) bool { return in.MessageDue && in.Delivery == api.DeliveryPolicyDeliver }

// dying reports that it is not known yet how our harness ended.
func dying(in *input) bool { return in.Holder == session.HolderDeadOurs && in.Dying }

// retained reports that the class keeps the terminal of a stopped session, now still.
func retained(in *input) bool {
	return in.KeepSession && (!in.Closed || in.RetainUntil.IsZero() || waiting(in.RetainUntil))
}

// asksFirst reports that the harness is to be asked something, or was and did not answer
// yet, before it is started again.
func asksFirst(in *input) bool {
	return (in.VerdictOutdated || waiting(in.VerdictUntil)) && (in.Holder == session.HolderAbsent || in.Holder == session.HolderDeadOurs)
}

func waiting(until time.Time) bool { return until.After(now) }

// jumped reports that the clock went back behind the moment in which our harness was
// asked to end.
func jumped(in *input) bool { return in.StopRequested.After(now) }

// endpointsFirst reports that the sessions of the item's pull requests go before its own.
func endpointsFirst(in *input) bool {
	return in.EndpointsLeft != "" && (in.Desired == session.DesiredCleanedUp || in.Desired == session.DesiredDeleted)
}

// terminating reports whether our live harness is on its way out.
func terminating(in *input) bool {
	return in.Holder == session.HolderLiveOurs && !in.StopRequested.IsZero() && !(running(in) && in.Closed) && !endpointsFirst(in)
}

var safety = []invariant{
	must("hands off: a paused session gets no action", func(in *input, _ *plan) bool { return in.Paused }, does(session.ActionNone)),
	must("C171, C173: silence is not absence: no action while tmux does not answer",
		func(in *input, _ *plan) bool { return in.Holder == session.HolderUnknown }, does(session.ActionNone)),
	must("an unknown desired state gets no action", func(in *input, _ *plan) bool { return in.Desired == "Levitating" }, does(session.ActionNone)),
	must("only our own is asked to end, killed or closed", does(session.ActionTerminate, session.ActionKill, session.ActionKillSession),
		func(in *input, _ *plan) bool { return in.Holder.Ours() }),
	must("only a live harness is asked to end, and once but for a jump of the clock", does(session.ActionTerminate),
		func(in *input, _ *plan) bool {
			return in.Holder == session.HolderLiveOurs && (in.StopRequested.IsZero() || jumped(in))
		}),
	must("R13: only a live harness is killed, and only after the grace", does(session.ActionKill),
		func(in *input, _ *plan) bool {
			return in.Holder == session.HolderLiveOurs && !in.StopRequested.IsZero() && !now.Before(in.StopRequested.Add(in.Grace))
		}),
	must("C172: a terminal session is closed only when its harness has ended", does(session.ActionKillSession),
		func(in *input, _ *plan) bool {
			return in.Holder == session.HolderDeadOurs || in.Holder == session.HolderShared
		}),
	must("T20: a person's pane is closed with it only by a cleanup that says so",
		func(in *input, p *plan) bool {
			return in.Holder == session.HolderShared && p.Action == session.ActionKillSession
		},
		func(in *input, _ *plan) bool { return in.Desired == session.DesiredCleanedUp && in.Force }),
	must("a terminal session is closed only where it is not to be kept, or not any longer", does(session.ActionKillSession),
		func(in *input, _ *plan) bool {
			switch in.Desired {
			case session.DesiredCleanedUp:
				return true
			case session.DesiredRunning:
				return in.Tidy && in.Holder == session.HolderDeadOurs && !dying(in)
			}
			return !retained(in)
		}),
	must("a checkout is removed only where it is not to be kept, and where nothing works in it that we know of", does(session.ActionRemoveCheckout),
		func(in *input, _ *plan) bool {
			return !running(in) && in.RemoveCheckout && in.RemovalProblem == "" && in.Holder != session.HolderLiveOurs && in.Holder != session.HolderShared
		}),
	must("nothing is started without its checkout", does(session.ActionSpawn), func(in *input, _ *plan) bool { return !in.CheckoutMissing }),
	must("a checkout is made only where a start is next, and only when it is missing", does(session.ActionPrepareCheckout),
		func(in *input, _ *plan) bool {
			return running(in) && in.CheckoutMissing && in.Holder == session.HolderAbsent && in.Obstacle == nil && (in.Swept || !in.Started && !in.Intended)
		}),
	must("T20: nothing is swept beside a pane that lives in our session", does(session.ActionSweep),
		func(in *input, _ *plan) bool {
			return in.Holder != session.HolderShared && in.Holder != session.HolderLiveOurs
		}),
	must("C013, C168: nothing is done beside a live session that is not ours, but what concerns our own record",
		func(in *input, _ *plan) bool {
			return in.Holder == session.HolderLiveForeign || in.Holder == session.HolderLiveOther
		},
		func(in *input, p *plan) bool {
			return does(session.ActionNone, session.ActionClose, session.ActionCleanUp, session.ActionRelease, session.ActionRemoveCheckout)(in, p) ||
				in.Desired == session.DesiredCleanedUp && p.Action == session.ActionSweep
		}),
	must("C014, C170: cleared is only what is dead, and of another object only what nobody knows", does(session.ActionClear),
		func(in *input, _ *plan) bool {
			return running(in) && !in.ClearFailed && (in.Holder == session.HolderDeadOurs && in.Swept ||
				in.Holder == session.HolderDeadForeign || in.Holder == session.HolderDeadOther && !in.OccupantKnown)
		}),
	must("a harness is started only where there is nothing, and where nothing is left of the one before", does(session.ActionSpawn),
		func(in *input, _ *plan) bool {
			return running(in) && in.Holder == session.HolderAbsent && in.Obstacle == nil && (in.Swept || !in.Started && !in.Intended)
		}),
	must("a harness is asked about its model only where its start is next, and only when that is outdated", does(session.ActionAsk),
		func(in *input, _ *plan) bool {
			return running(in) && in.VerdictOutdated && asksFirst(in) && in.Obstacle == nil && !dying(in)
		}),
	must("nothing is done towards a start while the harness is asked about its model", func(in *input, _ *plan) bool { return running(in) && asksFirst(in) },
		func(in *input, p *plan) bool { return p.Action == session.ActionAsk || !startsSomething(in, p) }),
	must("C030: nothing is started while a gate is left",
		func(in *input, _ *plan) bool { return running(in) && len(in.Gates) > 0 },
		func(in *input, p *plan) bool { return !startsSomething(in, p) }),
	must("C030: a live harness is left alone while a gate is left, unless it was asked to end before",
		func(in *input, _ *plan) bool {
			return running(in) && len(in.Gates) > 0 && in.Holder == session.HolderLiveOurs && !terminating(in)
		}, does(session.ActionNone, session.ActionAdopt)),
	must("what could not be started again is not ended to be started anew",
		func(in *input, p *plan) bool {
			return running(in) && in.Obstacle != nil && p.Action == session.ActionTerminate && !jumped(in)
		},
		func(*input, *plan) bool { return false }),
	must("K18: nothing is started on a host that is being drained", func(in *input, _ *plan) bool { return parked(in) },
		func(in *input, p *plan) bool {
			return !does(session.ActionSpawn, session.ActionClear, session.ActionPrepareCheckout, session.ActionDeliver)(in, p)
		}),
	must("K18: nothing is given up for a drain: not the object, its record, its terminal, its checkout, its messages",
		func(in *input, _ *plan) bool { return parked(in) },
		func(in *input, p *plan) bool {
			return p.Messages != session.MessagesRefuse && !does(session.ActionClose, session.ActionCleanUp, session.ActionRelease, session.ActionRemoveCheckout, session.ActionKillSession)(in, p)
		}),
	must("K21: what runs on a host that is being drained is ended, whatever it does, after its grace at the latest",
		func(in *input, _ *plan) bool {
			return parked(in) && in.Holder == session.HolderLiveOurs && !in.Paused && !in.StopRequested.IsZero() && !waiting(in.StopRequested.Add(in.Grace)) && !jumped(in)
		}, does(session.ActionKill)),
	must("a draft is not ended by changed arguments",
		func(in *input, p *plan) bool {
			return running(in) && in.Draft && !in.RestartRequested && p.Action == session.ActionTerminate && !jumped(in)
		}, func(*input, *plan) bool { return false }),
}

var starting = []invariant{
	must("a start has a reason: somebody wants it, or the policy says so",
		func(in *input, p *plan) bool { return running(in) && startsSomething(in, p) },
		func(in *input, _ *plan) bool {
			if in.Registered && !in.Started && !in.Intended {
				return messageWaits(in) || in.RestartRequested
			}
			return wantedAnew(in) || in.Restart == api.RestartPolicyAlways && !waiting(in.BackoffUntil) ||
				in.Restart == api.RestartPolicyOnMessage && messageWaits(in) && !waiting(in.BackoffUntil)
		}),
	must("Never never starts by itself",
		func(in *input, _ *plan) bool {
			return running(in) && in.Restart == api.RestartPolicyNever && !wantedAnew(in) && in.Holder != session.HolderLiveOurs
		}, does(session.ActionNone, session.ActionKillSession)),
	must("T37: what keeps ending waits before it is started by itself",
		func(in *input, _ *plan) bool {
			return running(in) && waiting(in.BackoffUntil) && !wantedAnew(in) && in.Holder != session.HolderLiveOurs
		}, does(session.ActionNone, session.ActionKillSession)),
	must("R09: a conversation is resumed only where that is possible, also when it was intended before",
		func(_ *input, p *plan) bool { return p.Mode == api.LaunchResume },
		func(in *input, p *plan) bool { return in.CanResume && !p.NewConversation }),
	must("R14: a conversation is resumed only where it is known to be as its harness left it",
		func(_ *input, p *plan) bool { return p.Mode == api.LaunchResume },
		func(in *input, _ *plan) bool { return !in.Uncompared && in.Altered == "" }),
	must("R14: an altered conversation is in the way of its resume alone, ends nothing, and is looked at again",
		func(_ *input, p *plan) bool { return p.Reason == api.ReasonConversationAltered },
		func(in *input, p *plan) bool {
			return running(in) && in.Altered != "" && in.CanResume && p.Action == session.ActionNone && p.Messages == session.MessagesWait && p.Requeue > 0
		}),
	must("C021: an intent is carried out as it was recorded",
		func(_ *input, p *plan) bool { return p.Intended },
		func(in *input, p *plan) bool { return in.Intended && p.Mode == in.IntendedMode && !p.NewConversation }),
	must("C021: an intent is carried out wherever it can be",
		func(in *input, p *plan) bool {
			return p.Action == session.ActionSpawn && in.Intended && (in.IntendedMode == api.LaunchFresh || in.CanResume)
		}, func(_ *input, p *plan) bool { return p.Intended }),
	must("a start has a mode, and nothing else has one", always,
		func(_ *input, p *plan) bool {
			if p.Action != session.ActionSpawn {
				return p.Mode == "" && !p.NewConversation && !p.ResumeFailed && !p.Restart
			}
			return p.Mode == api.LaunchFresh || p.Mode == api.LaunchResume
		}),
	must("a fresh start has a new conversation, but for one that was intended before",
		func(in *input, p *plan) bool {
			return p.Action == session.ActionSpawn && p.Mode == api.LaunchFresh && !p.Intended
		}, func(_ *input, p *plan) bool { return p.NewConversation }),
	must("R09, C166: what ran before goes on where it can",
		func(in *input, p *plan) bool {
			return p.Action == session.ActionSpawn && !in.Intended && in.CanResume && (in.Started || in.Registered) && !failed(in)
		}, func(_ *input, p *plan) bool { return p.Mode == api.LaunchResume }),
	must("C167: a resume that ended by itself is not tried again",
		func(in *input, p *plan) bool {
			return p.Action == session.ActionSpawn && !in.Intended && failed(in)
		}, func(_ *input, p *plan) bool {
			return p.Mode == api.LaunchFresh && p.NewConversation && p.ResumeFailed
		}),
	must("a resume that we ended has not failed",
		func(in *input, p *plan) bool {
			return p.ResumeFailed || p.Action == session.ActionSpawn && !in.Intended && in.Started && in.CanResume && !in.StopRequested.IsZero()
		}, func(in *input, p *plan) bool {
			return p.ResumeFailed == (failed(in) || in.Lost)
		}),
	must("R01: a conversation that is not there any more is not tried, and that is told",
		func(in *input, p *plan) bool {
			return p.Action == session.ActionSpawn && in.Lost && (in.Started || in.Registered) && !(in.Intended && in.IntendedMode == api.LaunchFresh)
		}, func(_ *input, p *plan) bool {
			return p.Mode == api.LaunchFresh && p.NewConversation && p.ResumeFailed
		}),
	must("a start answers the restart that was asked for", does(session.ActionSpawn),
		func(in *input, p *plan) bool { return p.Restart == in.RestartRequested }),
}

var messages = []invariant{
	must("a message is typed only into our live harness, as the policy says, and not while a resume is open", does(session.ActionDeliver),
		func(in *input, _ *plan) bool {
			open := in.Resume == session.ResumePending && (in.ProbeUntil.IsZero() || waiting(in.ProbeUntil))
			return running(in) && in.Holder == session.HolderLiveOurs && messageWaits(in) && !open && len(in.Gates) == 0 && !in.Unrecorded
		}),
	must("termination is one-way: nothing is typed into what was asked to end", does(session.ActionDeliver),
		func(in *input, _ *plan) bool { return in.StopRequested.IsZero() && !in.Closed }),
	must("C037: a message is typed into a harness with other arguments only when it could not be started with the new ones", does(session.ActionDeliver),
		func(in *input, _ *plan) bool { return !in.ArgsDiffer || in.Obstacle != nil }),
	must("C179: messages are refused only when the session will not run",
		func(_ *input, p *plan) bool { return p.Messages == session.MessagesRefuse },
		func(in *input, p *plan) bool {
			if p.Action != session.ActionNone || in.Paused || in.Holder == session.HolderUnknown {
				return false
			}
			if in.RemoveCheckout && in.RemovalProblem != "" && !running(in) {
				return true
			}
			if running(in) {
				return in.Restart == api.RestartPolicyNever && !wantedAnew(in) && in.Holder != session.HolderLiveOurs && len(in.Gates) == 0
			}
			return in.Closed
		}),
	must("C179: a dead session that is not started by itself refuses them, whatever occupies its name",
		func(in *input, _ *plan) bool {
			return running(in) && in.Restart == api.RestartPolicyNever && !wantedAnew(in) && in.Holder != session.HolderLiveOurs && !dying(in) &&
				in.Holder != session.HolderUnknown && len(in.Gates) == 0 && in.Delivery != api.DeliveryPolicyDrop && !in.Paused &&
				!(in.Tidy && in.Holder == session.HolderDeadOurs)
		}, func(_ *input, p *plan) bool { return p.Messages == session.MessagesRefuse }),
	must("messages are dropped by the policy alone, and always",
		func(in *input, _ *plan) bool {
			return (running(in) || parked(in)) && !in.Paused && in.Holder != session.HolderUnknown
		},
		func(in *input, p *plan) bool {
			return (p.Messages == session.MessagesDrop) == (in.Delivery == api.DeliveryPolicyDrop)
		}),
	must("messages are not dropped otherwise",
		func(in *input, p *plan) bool { return p.Messages == session.MessagesDrop },
		func(in *input, _ *plan) bool {
			return (running(in) || parked(in)) && !in.Paused && in.Holder != session.HolderUnknown
		}),
	must("what becomes of messages is always said", always,
		func(_ *input, p *plan) bool {
			switch p.Messages {
			case session.MessagesWait, session.MessagesDeliver, session.MessagesDrop, session.MessagesRefuse:
				return true
			}
			return false
		}),
}

var ending = []invariant{
	must("an object is let go only when it is deleted", does(session.ActionRelease),
		func(in *input, _ *plan) bool { return in.Desired == session.DesiredDeleted }),
	must("nothing live of ours is left behind, but by the policy to keep it so", does(session.ActionRelease, session.ActionClose),
		func(in *input, _ *plan) bool {
			return in.Holder != session.HolderLiveOurs || retained(in) && !in.KillHarness && in.StopRequested.IsZero()
		}),
	must("a checkout is left behind only where somebody may still work in it", does(session.ActionRelease, session.ActionCleanUp),
		func(in *input, _ *plan) bool {
			return !in.RemoveCheckout || in.Holder == session.HolderLiveOurs || in.Holder == session.HolderShared
		}),
	must("T22: nothing outside the terminal is left behind", does(session.ActionRelease, session.ActionClose, session.ActionKillSession),
		func(in *input, _ *plan) bool {
			switch in.Holder {
			case session.HolderDeadOurs: // a start sweeps, and a cleanup does after it
				return in.Swept || in.Desired == session.DesiredCleanedUp || running(in)
			case session.HolderAbsent:
				return in.Swept || !in.Started && !in.Intended
			}
			return true
		}),
	must("a dead terminal session is kept only where it is to be kept",
		func(in *input, p *plan) bool {
			return in.Holder == session.HolderDeadOurs && does(session.ActionRelease, session.ActionClose)(in, p)
		}, func(in *input, _ *plan) bool { return retained(in) }),
	must("a cleanup leaves nothing of ours, and waits for the item's other sessions", does(session.ActionCleanUp),
		func(in *input, _ *plan) bool {
			return in.Desired == session.DesiredCleanedUp && !in.Holder.Ours() && in.EndpointsLeft == "" && (in.Swept || !in.Started && !in.Intended)
		}),
	must("a cleanup is done also after a stop: closed is not cleaned up",
		func(in *input, p *plan) bool {
			return p.Action == session.ActionNone && p.Reason == api.ReasonCleanedUp
		},
		func(in *input, _ *plan) bool { return in.Closed && !in.Started && !in.Intended && !in.Holder.Ours() }),
	must("a stop is recorded once", does(session.ActionClose),
		func(in *input, _ *plan) bool { return in.Desired == session.DesiredStopped && !in.Closed }),
	must("only what lives and is not known, or is wanted again, is taken into the record", does(session.ActionAdopt),
		func(in *input, _ *plan) bool {
			return in.Holder == session.HolderLiveOurs && (in.Unrecorded || (running(in) || parked(in)) && in.Closed)
		}),
	must("what is not in the record is not ended: without its stamp it could not be", does(session.ActionTerminate),
		func(in *input, _ *plan) bool { return !in.Unrecorded || jumped(in) }),
}

var telling = []invariant{
	must("every plan says why", always, func(_ *input, p *plan) bool {
		return p.Reason != "" && strings.TrimSpace(p.Message) != "" && !strings.HasSuffix(p.Message, ": ")
	}),
	must("SessionRunning is true of our live harness alone, and unknown when tmux is silent", always,
		func(in *input, p *plan) bool {
			want := metav1.ConditionFalse
			switch in.Holder {
			case session.HolderLiveOurs:
				want = metav1.ConditionTrue
			case session.HolderUnknown:
				want = metav1.ConditionUnknown
			}
			return p.Running == want
		}),
	must("Running is the reason of nothing that does not run",
		func(_ *input, p *plan) bool { return p.Reason == api.ReasonRunning },
		func(in *input, p *plan) bool { return running(in) && p.Running == metav1.ConditionTrue }),
	must("Stopped and CleanedUp are said only at rest: Ready repeats them",
		func(_ *input, p *plan) bool { return p.Reason == api.ReasonStopped || p.Reason == api.ReasonCleanedUp },
		func(in *input, p *plan) bool {
			return !running(in) && does(session.ActionNone, session.ActionClose, session.ActionRelease)(in, p)
		}),
}

var returning = []invariant{
	must("no wait is negative", always, func(_ *input, p *plan) bool { return p.Requeue >= 0 }),
	must("the end of the grace is waited for",
		func(in *input, p *plan) bool {
			return p.Action == session.ActionNone && !in.Paused && terminating(in) && !jumped(in) && waiting(in.StopRequested.Add(in.Grace)) && in.Desired != "Levitating"
		}, func(in *input, p *plan) bool { return p.Requeue == in.StopRequested.Add(in.Grace).Sub(now) }),
	must("T36: a clock that jumps back makes no grace longer", does(session.ActionNone),
		func(in *input, p *plan) bool {
			return p.Reason != api.ReasonStopping || p.Requeue <= max(in.Grace, 5*time.Second)
		}),
	must("the end of the retention is waited for",
		func(in *input, p *plan) bool {
			return p.Action == session.ActionNone && in.Desired == session.DesiredStopped && !in.Paused && in.Closed && retained(in) &&
				waiting(in.RetainUntil) && in.StopRequested.IsZero() && p.Reason == api.ReasonStopped &&
				(in.Holder == session.HolderDeadOurs || in.Holder == session.HolderLiveOurs)
		}, func(in *input, p *plan) bool { return p.Requeue == in.RetainUntil.Sub(now) }),
	must("what could not be removed is tried again", func(_ *input, p *plan) bool { return p.Reason == api.ReasonCheckoutKept },
		func(in *input, p *plan) bool { return p.Requeue > 0 && in.RemovalProblem != "" }),
	must("after a kill it is looked at again soon", does(session.ActionKill),
		func(_ *input, p *plan) bool { return p.Requeue > 0 && p.Requeue <= time.Second }),
	must("the end of a resume's probe is waited for",
		func(in *input, p *plan) bool {
			return p.Action == session.ActionNone && p.Reason == api.ReasonStarting && in.Holder == session.HolderLiveOurs && !in.ProbeUntil.IsZero()
		}, func(in *input, p *plan) bool { return p.Requeue == in.ProbeUntil.Sub(now) && p.Requeue > 0 }),
	must("the answer of a harness that is asked about its model is waited for",
		func(in *input, p *plan) bool {
			return running(in) && p.Action == session.ActionNone && p.Reason == api.ReasonStarting && in.Holder != session.HolderLiveOurs
		}, func(in *input, p *plan) bool { return p.Requeue > 0 && p.Requeue == in.VerdictUntil.Sub(now) }),
	must("the end of the delay is waited for, and only for that one waits so",
		func(_ *input, p *plan) bool { return p.Reason == api.ReasonCrashLoop },
		func(in *input, p *plan) bool {
			return p.Action == session.ActionNone && p.Requeue == in.BackoffUntil.Sub(now) && p.Requeue > 0
		}),
	must("T32: nothing is cleared before it is known how a harness ended, and that is looked for again",
		func(in *input, _ *plan) bool { return running(in) && dying(in) && !in.Paused },
		func(_ *input, p *plan) bool { return p.Action == session.ActionNone && p.Requeue > 0 }),
	must("tmux is asked again", func(in *input, p *plan) bool { return p.Reason == api.ReasonTmuxUnknown },
		func(_ *input, p *plan) bool { return p.Requeue > 0 }),
	must("what is in the way is looked at again", func(_ *input, p *plan) bool { return p.Reason == "InTheWay" },
		func(_ *input, p *plan) bool { return p.Requeue > 0 && p.Action == session.ActionNone }),
	must("C099: the item's own session goes last, and the others are looked at again",
		func(in *input, _ *plan) bool {
			return endpointsFirst(in) && !in.Paused && in.Holder != session.HolderUnknown
		}, func(_ *input, p *plan) bool { return p.Action == session.ActionNone && p.Requeue > 0 }),
	must("hands off is for as long as it takes: nothing is asked again", func(in *input, _ *plan) bool { return in.Paused },
		func(_ *input, p *plan) bool { return p.Requeue == 0 && p.Reason == api.ReasonPaused }),
}

// aMessageStartsNothingElse: where a message makes the difference between a start and
// none, the restart policy says so, or a registered conversation waits for it.
func aMessageStartsNothingElse(pt point, p *plan) string {
	if pt[dMessageDue] == 0 || pt[dDesired] != 0 || !startsSomething(nil, p) {
		return ""
	}
	pt[dMessageDue] = 0
	in := pt.in()
	if without := session.Decide(in); startsSomething(&in, &without) || in.Restart == api.RestartPolicyOnMessage || in.Registered && !in.Started {
		return ""
	}
	return "a message starts nothing where the policy does not say so"
}

var _ = Describe("Decide, over the product of all its inputs", func() {
	rules := [][]invariant{safety, starting, messages, ending, telling, returning}
	// check lists what is broken at one point.
	check := func(pt point, in *input, p *plan) (broken []string) {
		for _, group := range rules {
			for i := range group {
				if b := group[i].broken(in, p); b != "" {
					broken = append(broken, b)
				}
			}
		}
		if b := aMessageStartsNothingElse(pt, p); b != "" {
			broken = append(broken, b)
		}
		return broken
	}

	for _, s := range spaces {
		It(s.name+": keeps every invariant, and depends on nothing else", func() {
			var faults []string
			random := uint64(GinkgoRandomSeed())*2 + 1
			n := 0
			s.each(func(pt point) bool {
				n++
				in := pt.in()
				want := session.Decide(in)
				for _, b := range check(pt, &in, &want) {
					faults = append(faults, fmt.Sprintf("%s\n\tat %s\n\tplan %+v", b, pt, want))
				}
				for range max(1, s.repeats) {
					other := s.scrambled(pt, &random)
					if got := session.Decide(other.in()); got != want {
						faults = append(faults, fmt.Sprintf("%+v\n\tat %s\nis\n\t%+v\n\tat %s", want, pt, got, other))
					}
				}
				return len(faults) < 5
			})
			Expect(strings.Join(faults, "\n")).To(BeEmpty())
			AddReportEntry("points", n)
		})
	}
})
