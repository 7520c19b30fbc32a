package apply

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// RateLimiter delays what failed: a fifth of a second at first, doubling, and never
// more than 15 seconds, so that a session is looked after soon when an outage is over,
// however long it was.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, 15*time.Second)
}
