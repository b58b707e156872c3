package projectcmd

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const initHelp = `Write a first project file, with a comment on each line, to FILE (default project.yaml).
FILE must not exist. No crawl starts with the file before you set contact and seeds in it.`

const initExample = `  decorum init books.yaml
  decorum check books.yaml`

// defaultProjectFile is the name of the file that decorum init writes, and its name in firstProject.
const defaultProjectFile = "project.yaml"

// firstProject is the text that decorum init writes.
//
//go:embed first_project.yaml
var firstProject string

// NewInitCommand returns the command decorum init.
func NewInitCommand(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use: "init [FILE]", Short: "Write a first project file", Long: initHelp, Example: initExample,
		Args: command.ArgsOrUsageError(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, names []string) error {
			return writeFirstProject(env, append(names, defaultProjectFile)[0])
		},
	}
}

// writeFirstProject writes firstProject to a new file, and prints what to do next.
func writeFirstProject(env *command.Env, file string) error {
	name := plaintext.ReplaceControlChars(file)
	text := strings.ReplaceAll(firstProject, defaultProjectFile, filepath.Base(name))
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return usage.Errorf("%s already exists: name another file", name)
	}
	if err != nil {
		return usage.Errorf("cannot write the project file: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil { // leave no half of a file
		return errors.Join(err, os.Remove(file))
	}
	_, err = fmt.Fprintf(env.Stdout, "wrote %s; set the fields marked \"yours\" in it, and then:\n"+
		"  decorum check %s\n  decorum crawl -c %s\n", name, name, name)
	return err
}
