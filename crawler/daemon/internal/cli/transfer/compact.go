package transfer

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

const frontierCompactHelp = `Rewrite the files of a crawl's state without their free space, because files do not
shrink by themselves when the queues of a crawl become shorter. decorum frontier
stats prints how much is free. The disk must have space for the new files beside the
old ones, which stay unchanged until the new ones are complete.

The files are frontier.db and robots.db. The projects of a daemon share its robots.db:
--data DIR/projects/NAME rewrites the frontier.db of a stopped project, and --data DIR
the robots.db of a stopped daemon.`

// NewCompactCommand returns the command decorum frontier compact.
func NewCompactCommand(env *command.Env) *cobra.Command {
	var dataDir string
	c := &cobra.Command{
		Use: "compact", Short: "Free the unused space in a crawl's files", Long: frontierCompactHelp,
		Example: "  decorum frontier compact --data decorum-data", Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return compactFrontier(env.Stdout, datadir.StateDir(dataDir)) },
	}
	command.AddDataFlag(c.Flags(), &dataDir)
	return c
}

// compactFrontier rewrites the store files that belong to dir and prints their sizes. It fails if a
// process uses the directory, or if the crawl's state is in Redis.
func compactFrontier(w io.Writer, dir datadir.StateDir) (err error) {
	files, err := dir.StoreFiles()
	if err != nil {
		return err
	}
	lock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	// Find all files before the first one is rewritten.
	before := make([]os.FileInfo, len(files))
	for i, name := range files {
		if before[i], err = os.Stat(dir.Path(name)); err != nil {
			return err
		}
	}
	// Rewrite one file after the other; an error leaves all files whole.
	for i, name := range files {
		if err := bolt.Compact(dir.Path(name)); err != nil {
			return err
		}
		after, err := os.Stat(dir.Path(name))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %s, was %s\n", name, plaintext.FormatBytes(after.Size()),
			plaintext.FormatBytes(before[i].Size()))
	}
	return nil
}
