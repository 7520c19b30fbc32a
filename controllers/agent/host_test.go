package agent

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// outage is a client that answers when its context ends.
type outage struct {
	client.Client
	bounded bool
}

func (o *outage) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	_, o.bounded = ctx.Deadline()
	return context.DeadlineExceeded
}

var _ = Describe("an event of the host (H09)", func() {
	It("waits for the API server no longer than a hint, and is told of the host's name", func() {
		down := &outage{}
		Expect(hostEmitter{client: down, name: "host-1"}.host().Name).To(Equal("host-1"))
		Expect(down.bounded).To(BeTrue())
	})
})
