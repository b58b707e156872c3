package manpage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Write writes into the directory dir a page of section 1 for root and for each available command below it:
// decorum.1, decorum-crawl.1 and so on. version is that of the program.
func Write(root *cobra.Command, version, dir string) error {
	name := filepath.Join(dir, pageName(root)+".1")
	if err := os.WriteFile(name, []byte(page(root, version)), 0o644); err != nil {
		return err
	}
	for _, c := range availableCommands(root) {
		if err := Write(c, version, dir); err != nil {
			return err
		}
	}
	return nil
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// availableCommands returns the commands directly below c that help shows.
func availableCommands(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			list = append(list, sub)
		}
	}
	return list
}

// page returns the page of a command in the macros of man(7).
func page(c *cobra.Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"decorum %s\" \"decorum\"\n", strings.ToUpper(pageName(c)), escape(version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(pageName(c)), escape(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escape(c.UseLine()))
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n")
	for paragraph := range strings.SplitSeq(strings.TrimSpace(about), "\n\n") {
		b.WriteString(".PP\n")
		if strings.Contains(paragraph, "\n  ") { // a table, or a list
			writeLiteral(&b, paragraph)
		} else {
			b.WriteString(escape(paragraph) + "\n")
		}
	}
	c.InitDefaultHelpFlag()
	writeFlags(&b, "OPTIONS", c.NonInheritedFlags())
	writeFlags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		writeLiteral(&b, strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	writeSeeAlso(&b, c)
	return b.String()
}

// writeFlags writes a section with the flags that help shows.
func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fR, ", escape(f.Shorthand))
		}
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fR", escape(f.Name))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", escape(value))
		}
		b.WriteString("\n" + escape(usage))
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
			fmt.Fprintf(b, " (default %s)", escape(f.DefValue))
		}
		b.WriteString("\n")
	})
}

// writeSeeAlso names the man pages of the parent command and of the subcommands.
func writeSeeAlso(b *strings.Builder, c *cobra.Command) {
	others := availableCommands(c)
	if c.HasParent() {
		others = append([]*cobra.Command{c.Parent()}, others...)
	}
	if len(others) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, other := range others {
		comma := ","
		if i == len(others)-1 {
			comma = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", escape(pageName(other)), comma)
	}
}

// writeLiteral writes text whose lines are kept as they are.
func writeLiteral(b *strings.Builder, text string) {
	b.WriteString(".nf\n" + escape(text) + "\n.fi\n")
}

// escape makes text literal for roff: backslashes, hyphens, and control characters at the beginning of a
// line.
func escape(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
