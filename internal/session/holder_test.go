package session_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/session"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

const (
	me      = "uid-me"
	known   = "uid-known"  // another object of this host
	orphan  = "uid-orphan" // an object that nobody knows
	plain   = "loop-github-octo-foo-1"
	special = "loop-github-octo-foo-1-abc123"
)

var (
	life = tmux.Epoch{PID: 77, StartTime: 1}
	mine = session.Names{Preferred: plain, Disambiguated: special}
)

type hints struct{}

func (hints) AttachCommand(name string, readOnly bool) string {
	if readOnly {
		return "tmux attach -r -t =" + name
	}
	return "tmux attach -t =" + name
}

func (hints) KillCommand(name string) string { return "tmux kill-session -t =" + name }

// sight looks for the session me.
func sight(rec session.Record, sessions ...tmux.Session) session.Sighting {
	rec.UID = me
	snap := tmux.Snapshot{Epoch: life, Sessions: sessions}
	return session.Sight(snap, rec, mine, func(uid string) bool { return uid == known }, hints{})
}

func dead(id string) tmux.Pane { return tmux.Pane{ID: id, Dead: true} }

func launched(s tmux.Session, generation string) tmux.Session {
	s.Generation = generation
	return s
}

// recorded is the record of a session that was started as launch-1 in pane %1.
var recorded = session.Record{Target: plain, PaneID: "%1", Epoch: life.String(), LaunchID: "launch-1"}

// seen is what a table expects of a sighting.
type seen struct {
	holder session.Holder
	name   string
	// id is the session's, pane the harness's own.
	id, pane string
	known    bool
	twins    int
}

func of(s session.Sighting) seen {
	return seen{s.Holder, s.Name, s.Session.ID, s.Pane.ID, s.OccupantKnown, s.Twins}
}

var _ = Describe("Sight", func() {
	DescribeTable("by the stamp: who holds the session", func(rec session.Record, want seen, sessions ...tmux.Session) {
		Expect(of(sight(rec, sessions...))).To(Equal(want))
	},
		Entry("C010: stamped and live", recorded, seen{holder: session.HolderLiveOurs, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, alive("%1", 11)), "launch-1")),
		Entry("C018: stamped and dead", recorded, seen{holder: session.HolderDeadOurs, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, dead("%1")), "launch-1")),
		Entry("C021: stamped, and nothing is on record: a crash came in between", session.Record{},
			seen{holder: session.HolderLiveOurs, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, alive("%1", 11)), "launch-1")),
		Entry("renamed by a person", recorded, seen{holder: session.HolderLiveOurs, name: "mine", id: "$1", pane: "%1"},
			launched(sessionOf("$1", "mine", me, alive("%1", 11)), "launch-1")),
		Entry("renamed, with another session under the name", recorded, seen{holder: session.HolderLiveOurs, name: "mine", id: "$1", pane: "%1"},
			sessionOf("$2", plain, "", alive("%2", 12)), launched(sessionOf("$1", "mine", me, alive("%1", 11)), "launch-1")),
		Entry("without a pane at all", recorded, seen{holder: session.HolderDeadOurs, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me), "launch-1")),
		Entry("without a pane and a record", session.Record{}, seen{holder: session.HolderDeadOurs, name: plain, id: "$1"},
			sessionOf("$1", plain, me)),
		Entry("T05, P44: after another life of the server a pane of the same id is not looked at",
			session.Record{Target: plain, PaneID: "%1", Epoch: "12.34", LaunchID: "launch-1"},
			seen{holder: session.HolderLiveOurs, name: plain, id: "$1", pane: "%0"},
			launched(sessionOf("$1", plain, me, alive("%1", 11), alive("%0", 10)), "launch-2")),
		Entry("P44: the same launch, recorded in another life: the pane's number means nothing",
			session.Record{Target: plain, PaneID: "%1", Epoch: "12.34", LaunchID: "launch-1"},
			seen{holder: session.HolderLiveOurs, name: plain, id: "$1", pane: "%0"},
			launched(sessionOf("$1", plain, me, dead("%1"), alive("%0", 10)), "launch-1")),
	)

	DescribeTable("P43: the harness's own pane, whatever a person opens beside it", func(rec session.Record, want seen, sessions ...tmux.Session) {
		Expect(of(sight(rec, sessions...))).To(Equal(want))
	},
		Entry("split, and the person's pane is listed first", recorded, seen{holder: session.HolderLiveOurs, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, alive("%9", 19), alive("%1", 11)), "launch-1")),
		Entry("nothing on record: the first that was made, by number and not by spelling", session.Record{},
			seen{holder: session.HolderLiveOurs, name: plain, id: "$1", pane: "%9"},
			sessionOf("$1", plain, me, alive("%10", 20), alive("%9", 19), alive("%11", 21))),
		Entry("T20: our harness has ended, and the person's pane lives", recorded, seen{holder: session.HolderShared, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, dead("%1"), alive("%9", 19)), "launch-1")),
		Entry("T20: our pane was closed: the person's is not taken for it", recorded, seen{holder: session.HolderShared, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, alive("%9", 19)), "launch-1")),
		Entry("our pane was closed, and the person's has ended", recorded, seen{holder: session.HolderDeadOurs, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, dead("%9")), "launch-1")),
		Entry("the person's pane has ended, and our harness lives", recorded, seen{holder: session.HolderLiveOurs, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, alive("%1", 11), dead("%9")), "launch-1")),
	)

	DescribeTable("twins: two sessions with our UID", func(rec session.Record, want seen, a, b tmux.Session) {
		Expect(of(sight(rec, a, b))).To(Equal(want))
		Expect(of(sight(rec, b, a))).To(Equal(want), "in whatever order they are listed")
	},
		Entry("both live: the launch on record, and one more is reported", recorded,
			seen{holder: session.HolderLiveOurs, name: plain, id: "$1", pane: "%1", twins: 1},
			launched(sessionOf("$1", plain, me, alive("%1", 11)), "launch-1"), launched(sessionOf("$2", special, me, alive("%2", 12)), "launch-2")),
		Entry("the launch on record is dead: the live one, which must not be ended by what is done to the dead", recorded,
			seen{holder: session.HolderLiveOurs, name: special, id: "$2", pane: "%2"},
			launched(sessionOf("$1", plain, me, dead("%1")), "launch-1"), launched(sessionOf("$2", special, me, alive("%2", 12)), "launch-2")),
		Entry("the launch on record lives: the dead one is no fault", recorded,
			seen{holder: session.HolderLiveOurs, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, alive("%1", 11)), "launch-1"), launched(sessionOf("$2", special, me, dead("%2")), "launch-2")),
		Entry("both dead: the launch on record", recorded, seen{holder: session.HolderDeadOurs, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, dead("%1")), "launch-1"), launched(sessionOf("$2", special, me, dead("%2")), "launch-2")),
		Entry("a harness lives in one, a person's pane in the other", recorded,
			seen{holder: session.HolderLiveOurs, name: special, id: "$2", pane: "%2", twins: 1},
			launched(sessionOf("$1", plain, me, dead("%1"), alive("%9", 19)), "launch-1"), launched(sessionOf("$2", special, me, alive("%2", 12)), "launch-2")),
		Entry("a person's pane lives in one, the other is dead", session.Record{PaneID: "%1", Epoch: life.String(), LaunchID: "launch-1"},
			seen{holder: session.HolderShared, name: plain, id: "$1", pane: "%1"},
			launched(sessionOf("$1", plain, me, dead("%1"), alive("%9", 19)), "launch-1"), launched(sessionOf("$2", special, me, dead("%2")), "launch-2")),
		Entry("nothing is on record: a live one before a dead one without a launch", session.Record{},
			seen{holder: session.HolderLiveOurs, name: special, id: "$2", pane: "%2"},
			sessionOf("$1", plain, me, dead("%1")), launched(sessionOf("$2", special, me, alive("%2", 12)), "launch-2")),
	)

	It("no record is not the record of a session without a launch", func() {
		first := launched(sessionOf("$1", plain, me, alive("%1", 11)), "launch-1")
		Expect(sight(session.Record{}, first, sessionOf("$2", special, me, alive("%2", 12))).Session.ID).To(Equal("$1"))
	})

	DescribeTable("without the stamp: ours when the record names this very pane in this life of the server",
		func(rec session.Record, want seen, sessions ...tmux.Session) {
			Expect(of(sight(rec, sessions...))).To(Equal(want))
		},
		Entry("named", recorded, seen{holder: session.HolderLiveOurs, name: plain, id: "$1", pane: "%1"},
			sessionOf("$1", plain, "", alive("%1", 11))),
		Entry("named, with a pane of a person that was there before", session.Record{Target: plain, PaneID: "%5", Epoch: life.String(), LaunchID: "launch-1"},
			seen{holder: session.HolderLiveOurs, name: "work", id: "$1", pane: "%5"},
			sessionOf("$1", "work", "", alive("%2", 12), alive("%5", 15))),
		Entry("named, and dead", recorded, seen{holder: session.HolderDeadOurs, name: plain, id: "$1", pane: "%1"},
			sessionOf("$1", plain, "", dead("%1"))),
		Entry("N01, P44: the same pane id in another life", session.Record{Target: plain, PaneID: "%1", Epoch: "12.34"},
			seen{holder: session.HolderLiveForeign, name: plain, id: "$1"}, sessionOf("$1", plain, "", alive("%1", 11))),
		Entry("C094: the pane is on record as that of a terminal which cannot be ours", session.Record{Target: "main", PaneID: "%1", Epoch: life.String(), LaunchID: "launch-1"},
			seen{holder: session.HolderAbsent, name: plain}, sessionOf("$1", "main", "", alive("%1", 11))),
		Entry("no pane on record", session.Record{Target: plain, Epoch: life.String()},
			seen{holder: session.HolderLiveForeign, name: plain, id: "$1"}, sessionOf("$1", plain, "", alive("", 11))),
		Entry("C013, C168: no record", session.Record{}, seen{holder: session.HolderLiveForeign, name: plain, id: "$1"},
			sessionOf("$1", plain, "", alive("%1", 11))),
		Entry("the pane carries the stamp of another object", recorded,
			seen{holder: session.HolderAbsent, name: special}, sessionOf("$1", plain, known, alive("%1", 11))),
		Entry("our stamp is elsewhere: it counts more", recorded, seen{holder: session.HolderLiveOurs, name: special, id: "$2", pane: "%2"},
			sessionOf("$1", plain, "", alive("%1", 11)), launched(sessionOf("$2", special, me, alive("%2", 12)), "launch-2")),
	)

	DescribeTable("who holds the name, and which name is left", func(rec session.Record, want seen, sessions ...tmux.Session) {
		got := sight(rec, sessions...)
		Expect(of(got)).To(Equal(want))
		if want.holder == session.HolderAbsent {
			Expect(got.Detail).To(BeEmpty())
			return
		}
		Expect(got.Detail).To(And(ContainSubstring("tmux attach -r -t ="+want.name), ContainSubstring("tmux kill-session -t ="+want.name)),
			"C013: the remedy is named, for the very name")
	},
		Entry("nobody", session.Record{}, seen{holder: session.HolderAbsent, name: plain}),
		Entry("N01: a session whose name begins with ours", session.Record{}, seen{holder: session.HolderAbsent, name: plain},
			sessionOf("$1", plain+"2", "", alive("%1", 11))),
		Entry("N01: a session whose name ours begins with", session.Record{}, seen{holder: session.HolderAbsent, name: plain},
			sessionOf("$1", plain[:len(plain)-1], "", alive("%1", 11))),
		Entry("C013: a live session of a person", session.Record{}, seen{holder: session.HolderLiveForeign, name: plain, id: "$1"},
			sessionOf("$1", plain, "", alive("%1", 11))),
		Entry("C014: a dead one of a person", session.Record{}, seen{holder: session.HolderDeadForeign, name: plain, id: "$1"},
			sessionOf("$1", plain, "", dead("%1"))),
		Entry("a person's, of which one pane lives", session.Record{}, seen{holder: session.HolderLiveForeign, name: plain, id: "$1"},
			sessionOf("$1", plain, "", dead("%1"), alive("%2", 12))),
		Entry("C006, N05: a live one of another object with an alias of the name", session.Record{}, seen{holder: session.HolderAbsent, name: special},
			sessionOf("$1", plain, known, alive("%1", 11))),
		Entry("a live one of an object that nobody knows", session.Record{}, seen{holder: session.HolderAbsent, name: special},
			sessionOf("$1", plain, orphan, alive("%1", 11))),
		Entry("N05: a dead one of another object of this host is its record, and stays", session.Record{}, seen{holder: session.HolderAbsent, name: special},
			sessionOf("$1", plain, known, dead("%1"))),
		Entry("a dead one of an object that nobody knows can be cleared", session.Record{}, seen{holder: session.HolderDeadOther, name: plain, id: "$1"},
			sessionOf("$1", plain, orphan, dead("%1"))),
		Entry("both names are held by live others", session.Record{}, seen{holder: session.HolderLiveOther, name: special, id: "$2", known: true},
			sessionOf("$1", plain, orphan, alive("%1", 11)), sessionOf("$2", special, known, alive("%2", 12))),
		Entry("both names are held by dead others that are known", session.Record{}, seen{holder: session.HolderDeadOther, name: special, id: "$2", known: true},
			sessionOf("$1", plain, known, dead("%1")), sessionOf("$2", special, known, dead("%2"))),
		Entry("the second name is held by a person", session.Record{}, seen{holder: session.HolderLiveForeign, name: special, id: "$2"},
			sessionOf("$1", plain, known, alive("%1", 11)), sessionOf("$2", special, "", alive("%2", 12))),
		Entry("N20: who took the second name keeps it, also when the first is free again", session.Record{Target: special},
			seen{holder: session.HolderAbsent, name: special}),
		Entry("N20: who took the second name does not look at the first", session.Record{Target: special},
			seen{holder: session.HolderDeadForeign, name: special, id: "$2"},
			sessionOf("$1", plain, orphan, dead("%1")), sessionOf("$2", special, "", dead("%2"))),
		Entry("T05: the server began anew, and nothing is there", recorded, seen{holder: session.HolderAbsent, name: plain}),
	)

	It("says whose a session of another object is", func() {
		got := sight(session.Record{}, sessionOf("$1", plain, orphan, alive("%1", 11)), sessionOf("$2", special, known, alive("%2", 12)))
		Expect(got.Detail).To(ContainSubstring("belongs to the object with UID " + known))
		got = sight(session.Record{}, sessionOf("$1", plain, "", alive("%1", 11)))
		Expect(got.Detail).To(ContainSubstring("was not started by the-loop"))
	})

	It("an object without a UID owns nothing", func() {
		snap := tmux.Snapshot{Epoch: life, Sessions: []tmux.Session{sessionOf("$1", plain, "", alive("%1", 11))}}
		got := session.Sight(snap, session.Record{}, mine, func(string) bool { return true }, hints{})
		Expect(got.Holder).To(Equal(session.HolderLiveForeign))
		Expect(got.OccupantKnown).To(BeFalse())
	})
})
