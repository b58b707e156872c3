package completion

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
)

// TestProjectArguments checks that a command whose Use has PROJECT completes projects, and one with PROJECT...
// those that the line does not have yet.
func TestProjectArguments(t *testing.T) {
	data := t.TempDir()
	for _, name := range []string{"books", "news"} {
		if err := os.MkdirAll(filepath.Join(data, datadir.ProjectsDir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for use, want := range map[string][]string{"one PROJECT": nil, "many PROJECT...": {"news"}} {
		c := &cobra.Command{Use: use, Run: func(*cobra.Command, []string) {}}
		c.Flags().String("data", data, "")
		Register(&command.Env{}, c)
		if got, _ := c.ValidArgsFunction(c, nil, ""); !slices.Equal(got, []string{"books", "news"}) {
			t.Errorf("%s: offers %q first", use, got)
		}
		if got, _ := c.ValidArgsFunction(c, []string{"books"}, ""); !slices.Equal(got, want) {
			t.Errorf("%s: offers %q after books, want %q", use, got, want)
		}
	}
}
