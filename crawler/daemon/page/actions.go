package page

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// maxFormBytes bounds what a form may send. Whoever has more URLs than that sends
// them to the API, which has no such bound.
const maxFormBytes = 4 << 20

// What a form has done: where to go then, and what to say there; or the view of
// the form once more, with what is wrong.
type formResult struct {
	redirectTo, message string
	redisplayedPage     *pageView
}

// formHandler does what a form asks for, and leads to a page that says so.
func (s *webUI) formHandler(submit func(*http.Request) (formResult, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !api.CallerFromContext(r.Context()).Role.Allows(api.RoleOperate) {
			s.renderPage(w, r, problemView(forbiddenProblem("this login may look, and change nothing")))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
		if err := r.ParseForm(); err != nil {
			s.renderPage(w, r, problemView(unreadableFormProblem(err)))
			return
		}
		d, err := submit(r)
		switch {
		case d.redisplayedPage != nil:
			s.renderPage(w, r, *d.redisplayedPage)
			return
		case err != nil: // with its status, which the audit keeps
			v := problemView(err)
			v.data = problemData{problemOf(err), cmp.Or(d.redirectTo, "/")}
			s.renderPage(w, r, v)
			return
		case d.message != "":
			setFlashMessage(w, r, d.message)
		}
		http.Redirect(w, r, d.redirectTo, http.StatusSeeOther)
	})
}

// A problemData is why something was not done, and where it was asked for.
type problemData struct {
	*api.Problem
	BackURL string
}

func forbiddenProblem(detail string) *api.Problem {
	return &api.Problem{Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden, Detail: detail}
}

func unreadableFormProblem(err error) *api.Problem {
	p := &api.Problem{Title: "The form cannot be read", Status: http.StatusBadRequest, Detail: err.Error()}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		p.Status = http.StatusRequestEntityTooLarge
		p.Detail = fmt.Sprintf("a form may have %s; send more to the API", formatBytes(float64(tooLarge.Limit)))
	}
	return p
}

// actionMessages is what became of a project, by what was asked.
var actionMessages = map[api.ProjectAction]string{
	api.ActionStart: "%s is started", api.ActionPause: "%s pauses: what is in hand is finished",
	api.ActionResume: "%s goes on", api.ActionStop: "%s stops: what is in hand is finished",
}

func (s *webUI) controlProject(r *http.Request) (formResult, error) {
	name, action := r.PathValue("project"), api.ProjectAction(r.PathValue("action"))
	if actionMessages[action] == "" {
		return formResult{}, api.NotFound("%q is nothing that a project can be asked for", action)
	}
	return formResult{redirectTo: api.LocalRedirectPath(r.PostFormValue("back")), message: fmt.Sprintf(actionMessages[action], name)}, s.daemon.ControlProject(r.Context(), name, action)
}

func (s *webUI) reloadProjects(r *http.Request) (formResult, error) {
	changes, err := s.daemon.ReloadProjects(r.Context())
	var messages []string
	for _, c := range changes {
		if c.Outcome != "none" {
			messages = append(messages, c.Project+": "+strings.TrimSpace(c.Outcome+" "+c.Error))
		}
	}
	if len(messages) == 0 {
		messages = []string{"nothing has changed"}
	}
	return formResult{redirectTo: "/", message: "Project files are read again. " + strings.Join(messages, "; ")}, err
}

func (s *webUI) deleteProject(r *http.Request) (formResult, error) {
	name := r.PathValue("project")
	if r.PostFormValue("name") != name {
		return formResult{redirectTo: "/projects/" + url.PathEscape(name) + "/file"}, api.InvalidInput("not deleted: type %q to confirm it", name)
	}
	return formResult{redirectTo: "/", message: name + " is deleted: its file and its state are kept aside"}, s.daemon.DeleteProject(r.Context(), name)
}

func (s *webUI) setBrake(r *http.Request) (formResult, error) {
	back := api.LocalRedirectPath(r.PostFormValue("back"))
	b := api.Brake{Host: strings.TrimSpace(r.PostFormValue("host")), WithSubdomains: r.PostFormValue("domain") != "",
		Stop: r.PostFormValue("kind") != "slow", Reason: strings.TrimSpace(r.PostFormValue("reason")), By: api.CallerFromContext(r.Context()).Name, Since: time.Now()}
	if !b.Stop {
		delay, err := parseDuration(r.PostFormValue("delay"))
		if err != nil || delay <= 0 {
			return formResult{redirectTo: back}, api.InvalidInput("the rest must be a duration, as in 30s")
		}
		b.Delay = api.Milliseconds(delay)
	}
	if text := r.PostFormValue("for"); text != "" {
		duration, err := parseDuration(text)
		if err != nil || duration <= 0 {
			return formResult{redirectTo: back}, api.InvalidInput("how long the brake lasts must be a duration, as in 2h or 7d")
		}
		b.Expires = b.Since.Add(duration)
	}
	return formResult{redirectTo: back, message: "The brake is on: " + b.Host}, s.daemon.SetBrake(r.Context(), b)
}

func (s *webUI) liftBrake(r *http.Request) (formResult, error) {
	host := r.PostFormValue("host")
	return formResult{redirectTo: api.LocalRedirectPath(r.PostFormValue("back")), message: "The brake is off: " + host}, s.daemon.LiftBrake(r.Context(), host)
}

var daysPattern = regexp.MustCompile(`^(\d{1,4})d$`)

// parseDuration reads a duration as project files write it.
func parseDuration(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if m := daysPattern.FindStringSubmatch(text); m != nil {
		d, err := time.ParseDuration(m[1] + "h")
		return 24 * d, err
	}
	return time.ParseDuration(text)
}

// An addURLsForm is the form that URLs are added by.
type addURLsForm struct {
	Text    string
	Result  *api.AddURLsResult // what became of them
	Problem string             // why not all of them were taken
}

func emptyAddURLsForm(*http.Request, *api.Project) (any, error) { return addURLsForm{}, nil }

func (s *webUI) addURLs(r *http.Request) (formResult, error) {
	text := r.PostFormValue("urls")
	i, err := s.daemon.Inspector(r.Context(), r.PathValue("project"))
	if err != nil {
		return formResult{}, err
	}
	result, addErr := i.AddURLs(r.Context(), nonBlankLines(text))
	if addErr != nil && result == nil {
		return formResult{}, addErr
	}
	v, l, err := s.loadProjectView(r, "urls")
	if err != nil {
		return formResult{}, err
	}
	form := addURLsForm{Result: result}
	if addErr != nil {
		form.Problem, v.status = addErr.Error(), problemOf(addErr).Status
	}
	if addErr != nil || result.InvalidLines > 0 || result.Refused > 0 {
		form.Text = text // to be put right
	}
	l.Content = form
	return formResult{redisplayedPage: &v}, nil
}

// nonBlankLines are those of a text, without those that are blank.
func nonBlankLines(text string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !yield(line, nil) {
				return
			}
		}
	}
}

// A projectFileForm is the form that a project's file is changed by.
type projectFileForm struct {
	Name    string // of a new project
	Text    string
	Problem string // why it was refused
}

// newProjectTemplate is what a new project begins with.
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

func (s *webUI) projectCreationPage(*http.Request) (pageView, error) {
	return pageView{templateName: "new", title: "New project", data: projectFileForm{Text: fmt.Sprintf(newProjectTemplate, "books")}}, nil
}

func (s *webUI) createProject(r *http.Request) (formResult, error) {
	form := projectFileForm{Name: strings.TrimSpace(r.PostFormValue("name")), Text: submittedProjectFile(r)}
	return s.putProjectOrRedisplay(r, form.Name, form.Text, func(problem string) (pageView, error) {
		form.Problem = problem
		return pageView{templateName: "new", title: "New project", data: form}, nil
	})
}

func (s *webUI) projectFilePage(r *http.Request) (pageView, error) {
	if !api.CallerFromContext(r.Context()).Role.Allows(api.RoleOperate) {
		return pageView{}, forbiddenProblem("a project file may hold passwords: only who may operate sees it")
	}
	v, l, err := s.loadProjectView(r, "file")
	if err != nil {
		return pageView{}, err
	}
	text, err := s.daemon.ReadProjectFile(r.Context(), l.Name)
	if err != nil && !isNotFound(err) { // a file that has gone can be written again
		return pageView{}, err
	}
	l.Content = projectFileForm{Text: string(text), Problem: l.FileError}
	return v, nil
}

func (s *webUI) saveProjectFile(r *http.Request) (formResult, error) {
	text := submittedProjectFile(r)
	return s.putProjectOrRedisplay(r, r.PathValue("project"), text, func(problem string) (pageView, error) {
		v, l, err := s.loadProjectView(r, "file")
		if err == nil {
			l.Content = projectFileForm{Text: text, Problem: problem}
		}
		return v, err
	})
}

// submittedProjectFile returns the file of a form: browsers end its lines in CR LF.
func submittedProjectFile(r *http.Request) string {
	return strings.ReplaceAll(r.PostFormValue("file"), "\r\n", "\n")
}

// putProjectOrRedisplay makes or changes a project. A file that is refused is shown again.
func (s *webUI) putProjectOrRedisplay(r *http.Request, name, text string, redisplay func(problem string) (pageView, error)) (formResult, error) {
	created, err := s.daemon.PutProject(r.Context(), name, []byte(text))
	if p, ok := errors.AsType[*api.Problem](err); ok {
		v, err := redisplay(p.Error())
		v.status = p.Status
		return formResult{redisplayedPage: &v}, err
	}
	if err != nil {
		return formResult{}, err
	}
	d := formResult{redirectTo: "/projects/" + url.PathEscape(name), message: name + " follows its file as it is now"}
	if created {
		d.message = name + " is there, and can be started"
	}
	return d, nil
}
