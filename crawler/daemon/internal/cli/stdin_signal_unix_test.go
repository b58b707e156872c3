//go:build unix

package cli

import (
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/internal/testfile"
)

// A signal kills a command that waits for its standard input.
func TestSignalDuringReadOfStdin(t *testing.T) {
	if testing.Short() {
		t.Skip("the commands are separate processes")
	}
	t.Parallel()
	file := testfile.Write(t, "robots.txt", "User-agent: *\nDisallow: /a\n")
	for name, args := range map[string][]string{
		"lint":    {"robots", "lint", "-"},
		"diff":    {"robots", "diff", "--urls=-", file, file},
		"batch":   {"robots", "batch"},
		"sitemap": {"sitemap", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			c, stderr := newCommandProcess(t, args...)
			stdin, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			deadline := time.AfterFunc(time.Minute, func() { c.Process.Kill() })
			// The command reads once it has taken more than the pipe holds.
			if _, err := io.WriteString(stdin, strings.Repeat("\n", 256<<10)); err != nil {
				t.Error(err)
			}
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			err = c.Wait()
			deadline.Stop()
			if status := c.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
				t.Errorf("%v, want the end by SIGTERM; stderr: %s", err, stderr)
			}
		})
	}
}
