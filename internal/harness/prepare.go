package harness

import "context"

// Values of PrepareOptions.Scope.
const (
	// TrustWorkspaceRoot trusts the spawn directory and, where that is safe, the
	// workspace root above it. It is the default, for "" too.
	TrustWorkspaceRoot = "WorkspaceRoot"
	// TrustDirectory trusts the spawn directory alone.
	TrustDirectory = "Directory"
)

// Values of PrepareOptions.AcceptBypass.
const (
	// AcceptBypassAuto accepts the disclaimer when the harness's arguments ask for the
	// mode that it warns of. It is the default, for "" too.
	AcceptBypassAuto = "Auto"
	// AcceptBypassAlways accepts it for every session.
	AcceptBypassAlways = "Always"
	// AcceptBypassNever leaves it to a person.
	AcceptBypassNever = "Never"
)

// PrepareOptions is what is needed to write the harness's own user config before a
// start, so that the session does not open on a dialog. The zero value of each
// switch is off.
type PrepareOptions struct {
	// Dir is the spawn directory, absolute; its realpath is trusted too when it
	// differs.
	Dir string
	// WorkspaceRoot is the directory that holds all checkouts, "" for none. Trust widens
	// to it only when it contains Dir and is neither / nor HOME.
	WorkspaceRoot string
	// Args are the harness's arguments: they tell whether it will run without
	// permissions.
	Args []string
	// Lookup gives environment variables as the harness will see them, "" when unset.
	// HOME must be absolute, and so must CLAUDE_CONFIG_DIR where it is set.
	Lookup func(key string) string
	// Trust accepts the workspace trust dialog, and by AcceptBypass the disclaimer about
	// running without permissions.
	Trust bool
	// Scope is how far Trust reaches: TrustWorkspaceRoot or TrustDirectory.
	Scope string
	// AcceptBypass is one of AcceptBypassAuto, AcceptBypassAlways, AcceptBypassNever.
	AcceptBypass string
	// Plugins enables the-loop's own plugin for the user, where nothing is said about it
	// yet.
	Plugins bool
	// MarketplaceRepo is where the plugin comes from, owner/repo; "" leaves the
	// marketplaces as they are.
	MarketplaceRepo string
	// LockDir holds the locks that all processes of the host share, absolute; it is made
	// when missing.
	LockDir string
	// CopyDir holds the last good copies of what is shared, absolute; it is made when
	// missing.
	CopyDir string
}

// Prepared is what a Prepare did.
type Prepared struct {
	// Applied says in words what was written, every trusted directory by its name; empty
	// when all was as it should be.
	Applied []string
	// Warnings are what was left out on purpose, for a person.
	Warnings []string
}

// Preparer is implemented by an adapter whose harness has a user config in which its
// start dialogs can be answered beforehand.
type Preparer interface {
	// Prepare writes that config. It changes only the keys that answer a dialog, and no
	// file in which nothing is to change. An error does not keep the session from being
	// started: it may then wait at a dialog. What was applied before the error is
	// returned with it.
	Prepare(ctx context.Context, o PrepareOptions) (Prepared, error)
}

// ConfigSharer is implemented by a Preparer whose harness's sessions write one config, and
// so can break it for each other (H09).
type ConfigSharer interface {
	// Shared are the files of that config, none where nothing is to be prepared.
	Shared(o PrepareOptions) ([]SharedConfig, error)
}

// An adapter that is none of these by a slip would be prepared for nothing.
var (
	_ Preparer     = claude{}
	_ Preparer     = gemini{}
	_ ConfigSharer = claude{}
)
