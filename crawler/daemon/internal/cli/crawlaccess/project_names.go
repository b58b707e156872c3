package crawlaccess

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// maxNamedProjects is how many projects CheckProjectNames names.
const maxNamedProjects = 20

// CheckProjectNames returns a usage error, which lists known, the projects of the daemon, unless known has all of
// names.
func CheckProjectNames(names, known []string) error {
	i := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(known, name) })
	if i < 0 {
		return nil
	}
	projects := strings.Join(known[:min(len(known), maxNamedProjects)], ", ")
	switch more := len(known) - maxNamedProjects; {
	case len(known) == 0:
		return usage.Errorf("the daemon has no project %q, and no other: put a file NAME.yaml into its directory of "+
			"project files", names[i])
	case more > 0:
		projects += fmt.Sprintf(" and %d more", more)
	}
	hint := ""
	if near := nearestNames(names[i], known); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "? "
	}
	return usage.Errorf("the daemon has no project %q: %s", names[i],
		plaintext.ReplaceNonPrintable(hint+"it has "+projects))
}

// nearestNames returns those of known that resemble name, as cobra finds the nearest commands.
func nearestNames(name string, known []string) []string {
	group := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, k := range known {
		group.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	return group.SuggestionsFor(name)
}
