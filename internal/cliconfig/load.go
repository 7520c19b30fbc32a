package cliconfig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Variable names the environment variable with the path of the configuration file.
const Variable = "THE_LOOP_CLI_CONFIG"

// ordinary is where a configuration file is looked for, in the working directory and
// then in the home directory.
var ordinary = filepath.Join(".the-loop", "cli-config.yaml")

// largest file that is read.
const largest = 4 << 20

// Load reads the configuration file: the named one, else that of $THE_LOOP_CLI_CONFIG,
// else ./.the-loop/cli-config.yaml, else ~/.the-loop/cli-config.yaml. Without any of
// them nothing is declared, which is no error. A file that is named and cannot be read is
// one, and so is a file that is wrong: an *InvalidError then.
//
// The file names agents to start, their arguments and their first words, so that of the
// working directory is refused inside a git checkout, which may be a stranger's, unless
// it is named.
func Load(named string) (*Config, error) {
	for _, c := range candidates(named) {
		data, err := read(c.path)
		if errors.Is(err, fs.ErrNotExist) && !c.must {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the configuration file of %s cannot be read: %w", c.by, err)
		}
		path, err := filepath.Abs(c.path)
		if err != nil {
			return nil, err
		}
		if top := checkoutAbove(path); c.found && top != "" {
			return nil, fmt.Errorf("the configuration file %s lies in the git checkout %s, and may be a stranger's: name it with --config to use it, or start from another directory", path, top)
		}
		config, err := Parse(path, data)
		if err != nil {
			return nil, err
		}
		config.NamedBy = c.by
		return config, nil
	}
	return &Config{}, nil
}

// candidate is one place of the file.
type candidate struct {
	path, by string
	// must be there.
	must bool
	// found by where one stands, and not named by anybody.
	found bool
}

// checkoutAbove is the git checkout that a file lies in, "" when it lies in none.
func checkoutAbove(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func candidates(named string) []candidate {
	if named != "" {
		return []candidate{{path: named, by: "--config", must: true}}
	}
	if path := os.Getenv(Variable); path != "" {
		return []candidate{{path: path, by: "$" + Variable, must: true}}
	}
	out := []candidate{{path: ordinary, by: "the working directory", found: true}}
	if home, err := os.UserHomeDir(); err == nil {
		out = append(out, candidate{path: filepath.Join(home, ordinary), by: "the home directory"})
	}
	return out
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err != nil {
		return nil, err
	}
	if len(data) > largest {
		return nil, fmt.Errorf("%s has more than %d bytes: it cannot be meant", path, largest)
	}
	return data, nil
}
