//go:build !chaos

package faultpoint

import "k8s.io/utils/clock"

// On tells whether the points are built in.
const On = false

// At is a point where the program may be killed or stopped.
func At(string) {}

// Fail is At for a point where an error may come instead; the caller passes it on.
func Fail(string) error { return nil }

// Clock is the clock that may jump.
func Clock() clock.Clock { return clock.RealClock{} }
