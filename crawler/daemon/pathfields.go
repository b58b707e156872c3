package daemon

import "slices"

// A filePathUse says what decorum does with the files that a field of a project names.
type filePathUse int

const (
	stateDirectory filePathUse = iota // keeps the state; projects of a daemon cannot set it
	inputFile                         // is read; in a daemon, relative to the folder of project files
	outputPath                        // is written; in a daemon, relative to the project's directory
)

// A filePathField is a field of the project file that names a file or a directory.
type filePathField struct {
	name string
	use  filePathUse
	// valuePointers returns pointers to the field's values. It copies a list first, since other
	// Projects may share it.
	valuePointers func(*Project) []*string
}

// filePathFields lists all fields of a Project that name files. It decides which of them
// the daemon confines for reading and for writing.
var filePathFields = []filePathField{
	{"seed_files", inputFile, func(p *Project) []*string { return pointersToClonedItems(&p.SeedFiles) }},
	{"agent.signature.keys", inputFile, func(p *Project) []*string { return pointersToClonedItems(&p.Agent.Signature.KeyFiles) }},
	{"store.path", stateDirectory, func(p *Project) []*string { return []*string{&p.Store.Path} }},
	{"store.redis.password_file", inputFile, func(p *Project) []*string { return []*string{&p.Store.Redis.PasswordFile} }},
	{"store.redis.ca_file", inputFile, func(p *Project) []*string { return []*string{&p.Store.Redis.CAFile} }},
	{"output.jsonl", outputPath, func(p *Project) []*string { return []*string{&p.Output.JSONL} }},
	{"output.warc", outputPath, func(p *Project) []*string { return []*string{&p.Output.WARCDir} }},
	{"output.ledger_key", inputFile, func(p *Project) []*string { return []*string{&p.Output.LedgerKeyFile} }},
}

// pointersToClonedItems copies a list, and returns pointers to the items of the copy.
func pointersToClonedItems(list *[]string) []*string {
	*list = slices.Clone(*list)
	items := make([]*string, len(*list))
	for i := range *list {
		items[i] = &(*list)[i]
	}
	return items
}

// forEachFilePath calls do with every path in p, and stops at the first error. It skips empty
// fields and standard output ("-").
func (p *Project) forEachFilePath(do func(f filePathField, field string, path *string) *fieldProblem) *fieldProblem {
	for _, f := range filePathFields {
		for i, path := range f.valuePointers(p) {
			if *path == "" || *path == "-" && f.use == outputPath {
				continue
			}
			field := f.name
			if f.isList() {
				field = indexedFieldName(f.name, i)
			}
			if problem := do(f, field, path); problem != nil {
				return problem
			}
		}
	}
	return nil
}

// isList reports whether the field is a list of paths.
func (f filePathField) isList() bool {
	return f.name == "seed_files" || f.name == "agent.signature.keys"
}
