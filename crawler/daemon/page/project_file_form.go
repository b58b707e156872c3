package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A projectFileForm is the view of the form for a project's file.
type projectFileForm struct {
	Name    string // of a new project
	Text    string // of the file
	Problem string // why the file was refused; empty: it was not
}

// newProjectTemplate is the format of the file that the form for a new project offers.
const newProjectTemplate = `project: %s
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

func (s *webUI) projectCreationPage(*http.Request) (pageResult, error) {
	return pageResult{templateName: "new", title: "New project",
		data: projectFileForm{Text: fmt.Sprintf(newProjectTemplate, "books")}}, nil
}

func (s *webUI) createProject(r *http.Request) (formResult, error) {
	form := projectFileForm{Name: strings.TrimSpace(r.PostFormValue("name")), Text: submittedProjectFile(r)}
	return s.putProjectOrRedisplay(r, form.Name, form.Text, func(problem string) (pageResult, error) {
		form.Problem = problem
		return pageResult{templateName: "new", title: "New project", data: form}, nil
	})
}

func (s *webUI) projectFilePage(r *http.Request) (pageResult, error) {
	if !api.CallerFromContext(r.Context()).Role.Allows(api.RoleOperate) {
		return pageResult{}, forbiddenProblem("a project file may hold passwords: only the role operate may see it")
	}
	v, l, err := s.loadProjectView(r, "file")
	if err != nil {
		return pageResult{}, err
	}
	text, err := s.daemon.ReadProjectFile(r.Context(), l.Name)
	if err != nil && !isNotFound(err) { // a missing file can be written again
		return pageResult{}, err
	}
	l.Content = projectFileForm{Text: string(text), Problem: l.FileError}
	return v, nil
}

func (s *webUI) saveProjectFile(r *http.Request) (formResult, error) {
	text := submittedProjectFile(r)
	return s.putProjectOrRedisplay(r, r.PathValue("project"), text, func(problem string) (pageResult, error) {
		v, l, err := s.loadProjectView(r, "file")
		if err == nil {
			l.Content = projectFileForm{Text: text, Problem: problem}
		}
		return v, err
	})
}

// submittedProjectFile returns the file of a form, with the CR LF of browsers replaced by LF.
func submittedProjectFile(r *http.Request) string {
	return strings.ReplaceAll(r.PostFormValue("file"), "\r\n", "\n")
}

// putProjectOrRedisplay creates or changes a project. If the daemon refuses the file, redisplay
// returns the page that shows the file again, with the problem.
func (s *webUI) putProjectOrRedisplay(
	r *http.Request, name, text string, redisplay func(problem string) (pageResult, error),
) (formResult, error) {
	created, err := s.daemon.PutProject(r.Context(), name, []byte(text))
	if p, ok := errors.AsType[*api.Problem](err); ok {
		v, err := redisplay(p.Error())
		v.status = p.Status
		return formResult{redisplayedPage: &v}, err
	}
	if err != nil {
		return formResult{}, err
	}
	d := formResult{redirectTo: "/projects/" + url.PathEscape(name), message: name + " uses its new file"}
	if created {
		d.message = name + " is created, and can be started"
	}
	return d, nil
}
