package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
)

// TestManPages checks that decorum man writes a page for each command, which has each flag that help shows.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	runCommand(t, "man", dir).want(t, command.ExitDone)
	pages := 0
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		pages++
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		text, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Fatal(err)
		}
		page := strings.NewReplacer(`\-`, "-", `\(aq`, "'").Replace(string(text))
		if !strings.Contains(page, "\n"+name+" - "+c.Short+"\n") {
			t.Errorf("%s.1 does not have the name and %q", name, c.Short)
		}
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(page, `\fB--`+f.Name+`\fR`) == f.Hidden {
				t.Errorf("%s.1 lacks --%s, or shows it though help does not", name, f.Name)
			}
		})
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "'") {
				t.Errorf("%s.1: roff reads this line as a request: %s", name, line)
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				check(sub)
			}
		}
	}
	check((&program{}).newRootCommand())
	files, err := os.ReadDir(dir)
	if err != nil || pages < 20 || len(files) < pages {
		t.Errorf("%d files for %d commands, %v", len(files), pages, err)
	}
	runCommand(t, "man", filepath.Join(dir, "absent")).want(t, command.ExitFailed, "absent")
}
