package harness

import "context"

// Prepare answers claude's start dialogs in its user config.
func (claude) Prepare(_ context.Context, _ PrepareOptions) (Prepared, error) {
	return Prepared{}, nil
}
