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

const frontierCompactHelp = `Write the files of a crawl's state anew, without what is free in them: files do
not shrink by themselves when a crawl has worked off its queues. decorum frontier
stats says how much is free. The disk must have room for the new files beside the
old ones, which stay as they are until the new ones are whole.`

func NewCompactCommand(env *command.Env) *cobra.Command {
	var dataDir string
	c := &cobra.Command{
		Use: "compact", Short: "Give the disk back what is free in a crawl's files", Long: frontierCompactHelp,
		Example: "  decorum frontier compact --data decorum-data", Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return compactFrontier(env.Stdout, datadir.StateDir(dataDir)) },
	}
	command.AddDataFlag(c.Flags(), &dataDir)
	return c
}

func compactFrontier(w io.Writer, dir datadir.StateDir) (err error) {
	if err := dir.RequireCrawl(); err != nil {
		return err
	}
	if err := dir.RequireLocalState(); err != nil {
		return err
	}
	lock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	for _, name := range []string{datadir.StoreFile, datadir.RobotsFile} {
		before, err := os.Stat(dir.Path(name))
		if err != nil {
			return err
		}
		if err := bolt.Compact(dir.Path(name)); err != nil {
			return err
		}
		after, err := os.Stat(dir.Path(name))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %s, was %s\n", name, plaintext.FormatBytes(after.Size()), plaintext.FormatBytes(before.Size()))
	}
	return nil
}
