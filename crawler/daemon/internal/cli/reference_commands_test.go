package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/internal/doctest"
)

// TestCommandReference checks that docs/commands.md has the --help text of every command. With
// -update it writes that file.
func TestCommandReference(t *testing.T) {
	doctest.CheckGenerated(t, "commands.md", "crawler/daemon/internal/cli", "TestCommandReference", writeCommands)
}

// writeCommands writes the --help text of every command as Markdown.
func writeCommands(w *bytes.Buffer) {
	root := (&program{}).newRootCommand()
	w.WriteString("# Commands\n\n" + doctest.Notice("crawler/daemon/internal/cli", "TestCommandReference") + `What ` +
		"`--help`" + ` says of each command. ` + "`decorum completion SHELL`" + ` prints the script
that completes them in bash, zsh, fish or PowerShell.

`)
	var all []*cobra.Command
	var collect func(*cobra.Command)
	collect = func(c *cobra.Command) {
		all = append(all, c)
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				collect(sub)
			}
		}
	}
	collect(root)
	for _, c := range all {
		fmt.Fprintf(w, "- [%s](#%s): %s\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
	}
	w.WriteString("\n")
	for _, c := range all {
		writeCommand(w, c)
	}
}

func writeCommand(w *bytes.Buffer, c *cobra.Command) {
	fmt.Fprintf(w, "## %s\n\n", c.CommandPath())
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(about), "\n\n") {
		if strings.Contains(paragraph, "\n  ") { // a table
			paragraph = "```text\n" + paragraph + "\n```"
		}
		w.WriteString(paragraph + "\n\n")
	}
	if c.Runnable() && c.HasParent() {
		fmt.Fprintf(w, "```text\n%s\n```\n\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(w, "For example:\n\n```sh\n%s\n```\n\n",
			strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	c.InitDefaultHelpFlag()
	if flags := c.NonInheritedFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(w, "```text\n%s```\n\n", flags.FlagUsages())
	}
}
