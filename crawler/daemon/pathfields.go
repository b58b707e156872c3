package daemon

import "slices"

// A pathKind says what decorum does with the files that a field of a project names.
type pathKind int

const (
	stateDirectory pathKind = iota // keeps the state; projects of a daemon cannot set it
	inputFile                      // is read; in a daemon, relative to the folder of project files
	outputPlace                    // is written; in a daemon, relative to the project's directory
)

// A pathField is a field of the project file that names a file or a directory.
type pathField struct {
	name string
	kind pathKind
	// paths returns pointers to the field's values. It copies a list first, since other
	// Projects may share it.
	paths func(*Project) []*string
}

// pathFields lists all fields of a Project that name files. It decides which of them
// the daemon confines for reading and for writing.
var pathFields = []pathField{
	{"seed_files", inputFile, func(p *Project) []*string { return copiedItems(&p.SeedFiles) }},
	{"agent.signature.keys", inputFile, func(p *Project) []*string { return copiedItems(&p.Agent.Signature.Keys) }},
	{"store.path", stateDirectory, func(p *Project) []*string { return []*string{&p.Store.Path} }},
	{"store.redis.password_file", inputFile, func(p *Project) []*string { return []*string{&p.Store.Redis.PasswordFile} }},
	{"store.redis.ca_file", inputFile, func(p *Project) []*string { return []*string{&p.Store.Redis.CAFile} }},
	{"output.jsonl", outputPlace, func(p *Project) []*string { return []*string{&p.Output.JSONL} }},
	{"output.warc", outputPlace, func(p *Project) []*string { return []*string{&p.Output.WARC} }},
	{"output.ledger_key", inputFile, func(p *Project) []*string { return []*string{&p.Output.LedgerKey} }},
}

// copiedItems copies a list, and returns pointers to the items of the copy.
func copiedItems(list *[]string) []*string {
	*list = slices.Clone(*list)
	items := make([]*string, len(*list))
	for i := range *list {
		items[i] = &(*list)[i]
	}
	return items
}

// eachPath calls do with every path in p, and stops at the first error. It skips empty
// fields and standard output ("-").
func (p *Project) eachPath(do func(f pathField, field string, path *string) *fault) *fault {
	for _, f := range pathFields {
		for i, path := range f.paths(p) {
			if *path == "" || *path == "-" && f.kind == outputPlace {
				continue
			}
			field := f.name
			if f.isList() {
				field = item(f.name, i)
			}
			if fault := do(f, field, path); fault != nil {
				return fault
			}
		}
	}
	return nil
}

// isList reports whether the field is a list of paths.
func (f pathField) isList() bool {
	return f.name == "seed_files" || f.name == "agent.signature.keys"
}
