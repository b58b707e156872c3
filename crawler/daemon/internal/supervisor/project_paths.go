package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// projectPaths say where a daemon keeps the files and the state of its projects. Both
// directories are absolute.
type projectPaths struct {
	DataDir         datadir.StateDir
	ProjectFilesDir string
}

// projectStateDir returns the directory of the state of a project.
func (d projectPaths) projectStateDir(name string) datadir.StateDir {
	return datadir.StateDir(d.DataDir.Path(filepath.Join(datadir.ProjectsDir, name)))
}

// projectFilePath returns the path of the file of a project.
func (d projectPaths) projectFilePath(name string) string {
	return filepath.Join(d.ProjectFilesDir, name+projectExt)
}

// isForbiddenOutputPath reports whether what a project writes would be a file of its state, or
// in the daemon's directory, but not in the project's, or among the project files.
func (d projectPaths) isForbiddenOutputPath(name, outputPath string) bool {
	projectDir := d.projectStateDir(name)
	if outputPath != "" && !filepath.IsAbs(outputPath) {
		outputPath = projectDir.Path(outputPath)
	}
	return projectDir.IsOwnStateFile(outputPath) || outputPath != "" && !datadir.IsWithin(outputPath, string(projectDir)) && (datadir.IsWithin(outputPath, string(d.DataDir)) || filepath.Dir(outputPath) == d.ProjectFilesDir)
}

// makePathsAbsolute makes the paths of a project absolute: what it writes is in its
// directory, what it reads is beside its file.
func (d projectPaths) makePathsAbsolute(p *project.Project) {
	p.Store.Path = string(d.projectStateDir(p.Name))
	p.ForEachFilePath(func(f project.FilePathField, _ string, path *string) *project.FieldProblem {
		if f.Use != project.StateDirectory {
			*path = d.absolutePath(p.Name, f.Use, *path)
		}
		return nil
	})
}

// absolutePath returns the absolute path of a name in a project.
func (d projectPaths) absolutePath(projectName string, use project.FilePathUse, path string) string {
	switch {
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case use == project.InputFile:
		return filepath.Join(d.ProjectFilesDir, path)
	}
	return d.projectStateDir(projectName).Path(path)
}

// moveToDeleted moves the file and the state of a project, or, if it returns an error,
// neither: a project must not begin anew because its file is on a file system that
// cannot be written.
func (d projectPaths) moveToDeleted(name string) error {
	deletedPath := d.DataDir.Path(filepath.Join(datadir.DeletedDir, name+"-"+time.Now().UTC().Format("20060102T150405.000Z")))
	if err := os.MkdirAll(filepath.Dir(deletedPath), datadir.PrivateDirMode); err != nil {
		return err
	}
	// Move the state first, then the file.
	err := os.Rename(string(d.projectStateDir(name)), deletedPath)
	if errors.Is(err, fs.ErrNotExist) { // it never ran
		err = os.Mkdir(deletedPath, datadir.PrivateDirMode)
	}
	if err != nil {
		return err
	}
	file := filepath.Join(deletedPath, name+projectExt)
	if err = moveProjectFile(d.projectFilePath(name), file); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// The file stays where it is: move the state back.
	_ = os.Remove(file) // the copy, if there is one
	if os.Remove(deletedPath) != nil {
		err = errors.Join(err, os.Rename(deletedPath, string(d.projectStateDir(name))))
	}
	return err
}

// moveProjectFile moves a project file, also to another file system.
func moveProjectFile(from, to string) error {
	text, err := readProjectFileBytes(from)
	if err != nil {
		return err
	}
	if err := datadir.WriteFileAtomic(to, text); err != nil {
		return err
	}
	return os.Remove(from)
}
