package daemon

import "strings"

// notYet are the fields that the project file knows and this version does not
// act on. To set one to anything but its default is refused: nobody must
// believe in a setting that does nothing.
var notYet = []struct{ field, why string }{
	{"output.ledger", "visits are written to output.jsonl"},
}

// unsupported returns the first field of p that notYet names and that is set.
func unsupported(p *Project) *fault {
	defaults := DefaultProject()
	for _, f := range notYet {
		if !sameAs(p.field(f.field), defaults.field(f.field)) {
			return &fault{f.field, " is not yet supported: " + f.why}
		}
	}
	return nil
}

// neverYet reports whether no value of a field does anything yet.
func neverYet(field string) bool {
	for _, f := range notYet {
		if f.field == field {
			defaults := DefaultProject()
			return defaults.field(field).IsZero()
		}
	}
	return false
}

// notYetCommands are the commands that are fixed and do not work yet.
var notYetCommands = []string{
	"ledger",
}

// commandNames returns those of notYetCommands that are under parent.
func commandNames(parent string) []string {
	var names []string
	for _, path := range notYetCommands {
		if name, ok := strings.CutPrefix(path, parent); ok && !strings.Contains(name, " ") {
			names = append(names, name)
		}
	}
	return names
}
