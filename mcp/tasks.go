package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/internal/text/texts"
)

// tasksExtension is the protocol extension with which a client can fetch the result of a long call
// later.
const tasksExtension = "io.modelcontextprotocol/tasks"

// Limits on tasks.
const (
	taskPoll = time.Second // the interval at which clients should poll
	taskKept = time.Hour   // how long a task is kept after its end
	maxTasks = 64
)

// taskAfter is the duration after which a call becomes a task.
var taskAfter = 2 * time.Second

// These are the statuses of tasks.
const (
	taskWorking   = "working"
	taskAsks      = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled" // the protocol's spelling
)

var errTaskCanceled = errors.New("the client has canceled the task")

// task is a call that continues after the answer to its request.
type task struct {
	id     string
	begun  time.Time
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	status  string
	message string
	updated time.Time
	ended   time.Time // zero while the task is active
	result  mcp.Result
	failed  *jsonrpc.Error
	asked   int                  // number of questions
	needs   mcp.InputRequestMap  // unanswered questions, by unique keys
	answers mcp.InputResponseMap // by the same keys as needs
	whole   chan struct{}        // receives a value when all answers have arrived
}

// tasks are the tasks of a server.
type tasks struct {
	abandon func(requestState string, cause error) // ends a call that waits for answers

	mu     sync.Mutex
	all    map[string]*task
	closed bool
	work   sync.WaitGroup
}

// ending describes how a tool request ended.
type ending struct {
	result mcp.Result
	err    error
}

type taskKey struct{}

// intercept turns a long call into a task if the client can fetch the result later.
func (ts *tasks) intercept(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok || !declaresTasks(call.Params.GetMeta()) {
			return next(ctx, method, req)
		}

		t := &task{id: rand.Text(), begun: time.Now(), status: taskWorking, whole: make(chan struct{}, 1)}
		t.updated = t.begun
		inner, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), taskKey{}, t))
		t.cancel = cancel
		done := make(chan ending, 1)
		go func() {
			result, err := next(inner, method, req)
			done <- ending{result, err}
		}()

		late := time.NewTimer(taskAfter)
		defer late.Stop()
		for {
			select {
			case end := <-done:
				cancel(nil)
				return end.result, end.err
			case <-ctx.Done():
				cancel(context.Cause(ctx))
				<-done
				return nil, context.Cause(ctx)
			case <-late.C:
			}
			if ts.adopt(t) {
				break
			}
		}

		first := t.describe()
		first.ResultType = "task"
		go func() {
			defer ts.work.Done()
			defer cancel(nil)
			t.follow(inner, <-done, call, ts.abandon, func(again *mcp.CallToolRequest) ending {
				result, err := next(inner, method, again)
				return ending{result, err}
			})
			time.AfterFunc(taskKept, func() { ts.drop(t.id) })
		}()
		return first, nil
	}
}

// declaresTasks reports whether the client of a request can fetch results later.
func declaresTasks(meta map[string]any) bool {
	var client struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	data, err := json.Marshal(meta[mcp.MetaKeyClientCapabilities])
	if err != nil || json.Unmarshal(data, &client) != nil {
		return false
	}
	_, ok := client.Extensions[tasksExtension]
	return ok
}

// adopt keeps a task, unless there are too many.
func (ts *tasks) adopt(t *task) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return false
	}
	if len(ts.all) >= maxTasks && !ts.dropOldest() {
		return false
	}
	if ts.all == nil {
		ts.all = map[string]*task{}
	}
	ts.all[t.id] = t
	ts.work.Add(1)
	return true
}

// dropOldest drops the task that ended first, and reports whether there was one. The caller holds
// ts.mu.
func (ts *tasks) dropOldest() bool {
	oldest, at := "", time.Time{}
	for id, t := range ts.all {
		t.mu.Lock()
		ended := t.ended
		t.mu.Unlock()
		if !ended.IsZero() && (oldest == "" || ended.Before(at)) {
			oldest, at = id, ended
		}
	}
	delete(ts.all, oldest)
	return oldest != ""
}

func (ts *tasks) drop(id string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.all, id)
}

// close ends all tasks.
func (ts *tasks) close() {
	ts.mu.Lock()
	ts.closed = true
	for _, t := range ts.all {
		t.cancel(errServerClosed)
	}
	ts.all = nil
	ts.mu.Unlock()
	ts.work.Wait()
}

// follow follows a task to its end. When a call has asked questions, follow continues it with the
// answers.
func (t *task) follow(
	ctx context.Context, end ending, call *mcp.CallToolRequest,
	abandon func(requestState string, cause error), again func(*mcp.CallToolRequest) ending,
) {
	for {
		result, _ := end.result.(*mcp.CallToolResult)
		if end.err != nil || result == nil || len(result.InputRequests) == 0 {
			t.finish(ctx, end)
			return
		}

		keys := t.ask(result.InputRequests)
		select {
		case <-t.whole:
		case <-ctx.Done():
			abandon(result.RequestState, context.Cause(ctx))
			t.finish(ctx, ending{err: context.Cause(ctx)})
			return
		}
		params := *call.Params
		params.RequestState, params.InputResponses = result.RequestState, t.takeAnswers(keys)
		more := *call
		more.Params = &params
		end = again(&more)
	}
}

// ask publishes questions under keys that are new to the task, and returns them by the call's
// keys.
func (t *task) ask(questions mcp.InputRequestMap) map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status, t.updated = taskAsks, time.Now()
	t.needs, t.answers = mcp.InputRequestMap{}, mcp.InputResponseMap{}
	keys := map[string]string{}
	for key, question := range questions {
		t.asked++
		keys[key] = fmt.Sprintf("%s-%d", key, t.asked)
		t.needs[keys[key]] = question
	}
	return keys
}

func (t *task) takeAnswers(keys map[string]string) mcp.InputResponseMap {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status, t.updated = taskWorking, time.Now()
	answers := mcp.InputResponseMap{}
	for key, shown := range keys {
		answers[key] = t.answers[shown]
	}
	t.needs, t.answers = nil, nil
	return answers
}

// answer accepts the client's answers. It ignores answers to questions that are not open.
func (t *task) answer(given mcp.InputResponseMap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	some := false
	for key, one := range given {
		if _, open := t.needs[key]; open {
			delete(t.needs, key)
			t.answers[key] = one
			some = true
		}
	}
	if some && len(t.needs) == 0 {
		t.whole <- struct{}{}
	}
}

// finish ends a task.
func (t *task) finish(ctx context.Context, end ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = time.Now()
	t.updated, t.needs = t.ended, nil
	switch {
	case errors.Is(context.Cause(ctx), errTaskCanceled):
		t.status = taskCancelled
	case end.err != nil:
		t.status, t.message = taskFailed, end.err.Error()
		if !errors.As(end.err, &t.failed) {
			t.failed = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: end.err.Error()}
		}
	default:
		t.status, t.message, t.result = taskCompleted, "", end.result
	}
}

// note records the progress of a task.
func (t *task) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended.IsZero() {
		t.message, t.updated = texts.Truncate(text, maxNote), time.Now()
	}
}

// taskResult is the wire format of a task.
type taskResult struct {
	mcp.ResultBase

	ResultType    string              `json:"resultType"`
	TaskID        string              `json:"taskId"`
	Status        string              `json:"status"`
	StatusMessage string              `json:"statusMessage,omitempty"`
	CreatedAt     time.Time           `json:"createdAt"`
	LastUpdatedAt time.Time           `json:"lastUpdatedAt"`
	TTL           *int64              `json:"ttlMs"`
	Poll          int64               `json:"pollIntervalMs"`
	InputRequests mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result        mcp.Result          `json:"result,omitempty"`
	Error         *jsonrpc.Error      `json:"error,omitempty"`
}

// describe returns the current state of the task.
func (t *task) describe() *taskResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := &taskResult{
		ResultType: "complete", TaskID: t.id, Status: t.status, StatusMessage: t.message,
		CreatedAt: t.begun.UTC(), LastUpdatedAt: t.updated.UTC(), Poll: taskPoll.Milliseconds(),
		Result: t.result, Error: t.failed,
	}
	if !t.ended.IsZero() {
		ttl := t.ended.Add(taskKept).Sub(t.begun).Milliseconds()
		out.TTL = &ttl
	}
	if t.status == taskAsks {
		out.InputRequests = mcp.InputRequestMap{}
		for key, question := range t.needs {
			out.InputRequests[key] = question
		}
	}
	return out
}

type taskParams struct {
	mcp.ParamsBase

	TaskID         string               `json:"taskId"`
	InputResponses mcp.InputResponseMap `json:"inputResponses,omitempty"`
}

type taskDone struct {
	mcp.ResultBase

	ResultType string `json:"resultType"`
}

// addTasks adds the tasks extension to a server.
func (s *Server) addTasks(server *mcp.Server) error {
	s.tasks.abandon = s.calls.abandon
	server.AddReceivingMiddleware(s.tasks.intercept)
	acknowledge := func(method string, use func(*task, *taskParams)) error {
		return mcp.AddReceivingCustomMethod(server, method, func(
			_ context.Context, _ *mcp.ServerSession, p *taskParams,
		) (*taskDone, error) {
			t, err := s.tasks.find(p)
			if err == nil {
				use(t, p)
			}
			return &taskDone{ResultType: "complete"}, err
		})
	}

	return errors.Join(
		mcp.AddReceivingCustomMethod(server, "tasks/get", func(
			_ context.Context, _ *mcp.ServerSession, p *taskParams,
		) (*taskResult, error) {
			t, err := s.tasks.find(p)
			if err != nil {
				return nil, err
			}
			return t.describe(), nil
		}),
		acknowledge("tasks/update", func(t *task, p *taskParams) { t.answer(p.InputResponses) }),
		acknowledge("tasks/cancel", func(t *task, _ *taskParams) { t.cancel(errTaskCanceled) }),
	)
}

// codeMissingCapability reports that a request needs a capability that its client did not declare.
const codeMissingCapability = -32021

// find returns the task of a request.
func (ts *tasks) find(p *taskParams) (*task, error) {
	if p == nil || !declaresTasks(p.GetMeta()) {
		return nil, &jsonrpc.Error{
			Code: codeMissingCapability, Message: "the client has not declared " + tasksExtension,
			Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
		}
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.all[p.TaskID]; t != nil {
		return t, nil
	}
	return nil, &jsonrpc.Error{
		Code:    jsonrpc.CodeInvalidParams,
		Message: fmt.Sprintf("there is no task %.40q: it may have ended more than %v ago", p.TaskID, taskKept),
	}
}
