/* Calls where there is enough of a stack; see the header. */
#include "call.h"

#include "kernels/engine.h"
#include "kernels/pool/large_stack.h"
#include "kernels/pool/thread_pool.h"
#include "reader.h"
#include "transform/status.h"

struct running {
    const struct tsr_call *call;
    enum tsr_status status;
};

static void make_call(void *context)
{
    struct running *const r = context;
    const struct tsr_call *const call = r->call;
    if (call->takes_turn) tsr_reader_begin(call->reader);
    r->status = call->run(call);
    if (call->takes_turn) r->status = tsr_reader_end(call->reader, r->status, call->error);
}

enum tsr_status tsr_run_call(const struct tsr_call *call)
{
    struct running r = {call, TSR_OK};
    if (tsr_pool_call(call->engine->pool, make_call, &r)) return r.status;
    return tsr_fail(call->error, TSR_ERROR_LIMIT, "no memory for a thread with a stack of %zu bytes", TSR_STACK_BYTES);
}

struct tsr_call tsr_call_of_reader(struct tsr_reader *reader, enum tsr_status (*run)(const struct tsr_call *call),
                                   uint32_t member, struct tsr_error *error)
{
    return (struct tsr_call){
        .run = run, .engine = reader->engine, .reader = reader, .takes_turn = true, .member = member, .error = error};
}

struct asking {
    bool (*question)(void *context);
    void *context;
    bool answer;
};

static void ask(void *context)
{
    struct asking *const a = context;
    a->answer = a->question(a->context);
}

bool tsr_ask(bool (*question)(void *context), void *context)
{
    struct asking a = {question, context, false};
    tsr_call_back(ask, &a);
    return a.answer;
}
