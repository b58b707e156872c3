package command

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/internal/usage"
)

// ArgsOrUsageError returns a check of the number of arguments, by one of cobra's checks such as
// cobra.ExactArgs. Its usage errors say which argument of the command's Use is missing, with the first of the
// command's examples, or which one is too many.
func ArgsOrUsageError(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check(c, args) == nil {
			return nil
		}
		required, optional := argumentNames(c.Use)
		if len(args) < len(required) {
			missing, verb := required[len(args):], "is"
			if len(missing) > 1 {
				verb = "are"
			}
			return usage.Errorf("%s %s missing%s; see %s --help", strings.Join(missing, " and "), verb, firstExample(c),
				c.CommandPath())
		}
		first := min(len(required)+len(optional), len(args)-1)
		return usage.Errorf("unexpected argument %q; see %s --help", args[first], c.CommandPath())
	}
}

// In a command's Use, bracketsPattern matches what is optional, flagPattern a flag with the name of its value,
// and argumentPattern the name of an argument.
var (
	bracketsPattern = regexp.MustCompile(`\[[^]]*\]`)
	flagPattern     = regexp.MustCompile(`--?[a-z-]+ [A-Za-z|]+`)
	argumentPattern = regexp.MustCompile(`\b[A-Z]{2,}(\|[A-Z]{2,})*\b`)
)

// argumentNames returns the names of the arguments that use, as in "diff OLD NEW", requires and permits.
func argumentNames(use string) (required, optional []string) {
	for _, part := range bracketsPattern.FindAllString(use, -1) {
		optional = append(optional, argumentPattern.FindAllString(flagPattern.ReplaceAllString(part, ""), -1)...)
	}
	use = flagPattern.ReplaceAllString(bracketsPattern.ReplaceAllString(use, ""), "")
	return argumentPattern.FindAllString(use, -1), optional
}

// firstExample returns the first example of c, as a part of an error; "" if c has none.
func firstExample(c *cobra.Command) string {
	example, _, _ := strings.Cut(strings.TrimSpace(c.Example), "\n")
	if example == "" {
		return ""
	}
	return ", as in " + example
}
