package supervisor

import (
	"crypto/sha256"
	"fmt"
	"slices"
)

// An apiProjectRecord is what daemon.json records of a project that came by the API.
type apiProjectRecord struct {
	// FileHashes are the SHA-256 of the project file as the API wrote it last, and, during a
	// replacement, also of the previous one. A file with another hash is the
	// operator's.
	FileHashes []string `json:"files"`
	// OutputPaths are the files of lines and directories of WARC files that the project has
	// begun.
	OutputPaths []string `json:"outputs,omitempty"`
}

// sha256Hex returns the SHA-256 of a text, in hexadecimal.
func sha256Hex(text []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// isProjectFileFromAPI reports whether the file of a project still has the text that the API wrote.
func (w *daemonStateStore) isProjectFileFromAPI(project string, text []byte) bool {
	return slices.Contains(w.current().APIProjects[project].FileHashes, sha256Hex(text))
}

// addAPIProjectFileHash records that the API is about to write the file of a project.
func (w *daemonStateStore) addAPIProjectFileHash(project, sum string) error {
	return w.updateAPIProjectRecord(project, func(r *apiProjectRecord) { r.FileHashes = append(withoutItem(r.FileHashes, sum), sum) })
}

// setAPIProjectFileHash records that the API has written the file of a project, and forgets other
// hashes.
func (w *daemonStateStore) setAPIProjectFileHash(project, sum string) error {
	return w.updateAPIProjectRecord(project, func(r *apiProjectRecord) { r.FileHashes = []string{sum} })
}

// isKnownOutputFile reports whether a project that came by the API has begun a file of lines.
func (w *daemonStateStore) isKnownOutputFile(project, path string) bool {
	return slices.Contains(w.current().APIProjects[project].OutputPaths, path)
}

// addKnownOutputFile records that a project from the API begins a file of lines. It forgets the
// oldest beyond maxKnownOutputs.
func (w *daemonStateStore) addKnownOutputFile(project, path string) error {
	return w.updateAPIProjectRecord(project, func(r *apiProjectRecord) {
		r.OutputPaths = append(withoutItem(r.OutputPaths, path), path)
		r.OutputPaths = r.OutputPaths[max(0, len(r.OutputPaths)-maxKnownOutputs):]
	})
}

// maxKnownOutputs is how many files of lines are recorded for a project. It is a
// constant: a project has one at a time, and begins a new one only when its project
// file names another.
const maxKnownOutputs = 100

func (w *daemonStateStore) updateAPIProjectRecord(project string, change func(*apiProjectRecord)) error {
	return w.update(func(t *savedDaemonState) {
		r := t.APIProjects[project]
		change(&r)
		t.APIProjects[project] = r
	})
}

// withoutItem returns a copy of a list without an item.
func withoutItem(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}
