package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A fileForm is the form that a project's file is changed by.
type fileForm struct {
	Name    string // of a new project
	Text    string
	Problem string // why it was refused
}

// newFile is what a new project begins with.
const newFile = `project: %s
agent:
  product: examplebot
  version: "1.0"
  contact: https://example.org/bot   # where site owners can reach you
seeds: [https://example.com/]
scope:
  within: host
politeness:
  delay: 2s
`

func (s *site) newProject(*http.Request) (view, error) {
	return view{name: "new", title: "New project", data: fileForm{Text: fmt.Sprintf(newFile, "books")}}, nil
}

func (s *site) createProject(r *http.Request) (done, error) {
	form := fileForm{Name: strings.TrimSpace(r.PostFormValue("name")), Text: fileText(r)}
	return s.put(r, form.Name, form.Text, func(problem string) (view, error) {
		form.Problem = problem
		return view{name: "new", title: "New project", data: form}, nil
	})
}

func (s *site) file(r *http.Request) (view, error) {
	if !api.CallerOf(r.Context()).Role.May(api.Operate) {
		return view{}, forbidden("a project file may hold passwords: only who may operate sees it")
	}
	v, l, err := s.lookAt(r, "file")
	if err != nil {
		return view{}, err
	}
	text, err := s.daemon.ProjectFile(r.Context(), l.Name)
	if err != nil && !isNotFound(err) { // a file that has gone can be written again
		return view{}, err
	}
	l.More = fileForm{Text: string(text), Problem: l.FileError}
	return v, nil
}

func (s *site) saveFile(r *http.Request) (done, error) {
	text := fileText(r)
	return s.put(r, r.PathValue("project"), text, func(problem string) (view, error) {
		v, l, err := s.lookAt(r, "file")
		if err == nil {
			l.More = fileForm{Text: text, Problem: problem}
		}
		return v, err
	})
}

// fileText returns the file of a form: browsers end its lines in CR LF.
func fileText(r *http.Request) string {
	return strings.ReplaceAll(r.PostFormValue("file"), "\r\n", "\n")
}

// put makes or changes a project. A file that is refused is shown again.
func (s *site) put(r *http.Request, name, text string, again func(problem string) (view, error)) (done, error) {
	created, err := s.daemon.PutProject(r.Context(), name, []byte(text))
	var p *api.Problem
	switch {
	case errors.As(err, &p):
		v, err := again(p.Error())
		v.status = p.Status
		return done{again: &v}, err
	case err != nil:
		return done{}, err
	}
	d := done{to: "/projects/" + url.PathEscape(name), said: name + " follows its file as it is now"}
	if created {
		d.said = name + " is there, and can be started"
	}
	return d, nil
}
