package project

import (
	"slices"
)

// A FilePathUse is what decorum does with the files that a field of a project names.
type FilePathUse int

const (
	StateDirectory FilePathUse = iota // keep the state in it; a daemon refuses the field
	InputFile                         // read it; in a daemon, relative to the folder of project files
	OutputPath                        // write it; in a daemon, relative to the project's directory
)

// A FilePathField is a field of the project file that names a file or a directory.
type FilePathField struct {
	name string // path of the field, such as output.warc
	Use  FilePathUse
	// valuePointers returns pointers to the field's values. It copies a list first, because copies
	// of a Project share their lists.
	valuePointers func(*Project) []*string
}

// filePathFields lists all fields of a Project that name files, and so decides which paths a daemon
// confines for reading and for writing.
var filePathFields = []FilePathField{
	{"seed_files", InputFile, func(p *Project) []*string { return pointersToClonedItems(&p.SeedFiles) }},
	{"agent.signature.keys", InputFile, func(p *Project) []*string {
		return pointersToClonedItems(&p.Agent.Signature.KeyFiles)
	}},
	{"fetch.ca_file", InputFile, func(p *Project) []*string { return []*string{&p.Fetch.CAFile} }},
	{"store.path", StateDirectory, func(p *Project) []*string { return []*string{&p.Store.Path} }},
	{"store.redis.password_file", InputFile, func(p *Project) []*string {
		return []*string{&p.Store.Redis.PasswordFile}
	}},
	{"store.redis.ca_file", InputFile, func(p *Project) []*string { return []*string{&p.Store.Redis.CAFile} }},
	{"output.jsonl", OutputPath, func(p *Project) []*string { return []*string{&p.Output.JSONL} }},
	{"output.warc", OutputPath, func(p *Project) []*string { return []*string{&p.Output.WARCDir} }},
	{"output.ledger_key", InputFile, func(p *Project) []*string { return []*string{&p.Output.LedgerKeyFile} }},
}

// pointersToClonedItems replaces a list with a copy and returns pointers to the copy's items.
func pointersToClonedItems(list *[]string) []*string {
	*list = slices.Clone(*list)
	items := make([]*string, len(*list))
	for i := range *list {
		items[i] = &(*list)[i]
	}
	return items
}

// ForEachFilePath calls do for every path in p, with the name of its field or list item. do may
// change *path. It skips empty fields and standard output ("-").
func (p *Project) ForEachFilePath(do func(f FilePathField, field string, path *string)) {
	for _, f := range filePathFields {
		for i, path := range f.valuePointers(p) {
			if *path == "" || *path == "-" && f.Use == OutputPath {
				continue
			}
			field := f.name
			if f.isList() {
				field = indexedFieldName(f.name, i)
			}
			do(f, field, path)
		}
	}
}

// isList reports whether the field is a list of paths.
func (f FilePathField) isList() bool {
	return f.name == "seed_files" || f.name == "agent.signature.keys"
}
