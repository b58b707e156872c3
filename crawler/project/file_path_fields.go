package project

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// A FilePathUse is what decorum does with the files that a field of a project names.
type FilePathUse int

const (
	StateDirectory FilePathUse = iota // keep the state in it; a daemon refuses the field
	InputFile                         // read it; relative to the directory of the project file
	OutputPath                        // write it; relative to the data directory of the crawl
)

// Resolve returns the place that a path in a project file means. fileDir is the directory of the
// project file, dataDir the data directory of the crawl: store.path, or that of the project in a
// daemon. A relative StateDirectory remains relative to the working directory.
func (u FilePathUse) Resolve(path, fileDir, dataDir string) string {
	switch {
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case u == InputFile:
		return filepath.Join(fileDir, path)
	case u == OutputPath:
		return filepath.Join(dataDir, path)
	}
	return path
}

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

// Resolve checks d as Check does, and returns the project with the places that the paths of the file
// mean (FilePathUse.Resolve), so that they do not depend on the working directory. Paths of the command
// line are relative to the working directory, and so is store.path.
func (d *File) Resolve(further ...*FieldProblem) (Project, error) {
	p := d.Project
	p.ForEachFilePath(func(f FilePathField, field string, path *string) {
		if d.file == "" || d.CommandLineArgByField[f.name] != "" {
			return
		}
		place := f.Use.Resolve(*path, filepath.Dir(d.file), p.Store.Path)
		further = append(further, formerPlaceProblem(field, *path, place))
		*path = place
	})
	return p, d.Check(further...)
}

// formerPlaceProblem returns the problem of a path that means another place than in earlier versions,
// to which all paths were relative to the working directory, if a file is at the former place. It names
// both places in full: the path is the operator's own, on this machine.
func formerPlaceProblem(field, path, place string) *FieldProblem {
	former, err := filepath.Abs(path)
	formerInfo, statErr := os.Stat(former)
	if err != nil || statErr != nil {
		return nil
	}
	if now, err := filepath.Abs(place); err == nil {
		place = now
	}
	if info, err := os.Stat(place); place == former || err == nil && os.SameFile(info, formerInfo) {
		return nil
	}
	return NewFieldProblem(field, "%q means %s, but %s exists, where earlier versions of decorum looked: "+
		"move it, or write the path that you mean in full", path, place, former)
}

// UnreadableSeedFiles returns a problem for each seed file that does not exist or cannot be examined.
func (d *File) UnreadableSeedFiles() (problems []*FieldProblem) {
	p := d.Project
	p.ForEachFilePath(func(f FilePathField, field string, path *string) {
		if f.name != "seed_files" {
			return
		}
		place := *path
		if d.file != "" && d.CommandLineArgByField[f.name] == "" {
			place = f.Use.Resolve(place, filepath.Dir(d.file), p.Store.Path)
		}
		if _, err := os.Stat(place); err != nil {
			cause := errors.Unwrap(err) // without the path, which may not be shown to every reader
			problems = append(problems, NewFieldProblem(field, "cannot read the seeds of %q: %v", place, cause))
		}
	})
	return problems
}

// isList reports whether the field is a list of paths.
func (f FilePathField) isList() bool {
	return f.name == "seed_files" || f.name == "agent.signature.keys"
}
