/* The memory that reading an input takes, and the threads that may do it. */
#include "input_parts.h"

void tsr_input_set_account(struct tsr_input *input, struct tsr_memory_account *account)
{
    input->account = account;
}

struct tsr_memory_account *tsr_input_account(const struct tsr_input *input)
{
    return input->account;
}

void tsr_input_set_crew(struct tsr_input *input, struct tsr_crew crew)
{
    input->crew = crew;
}

struct tsr_crew tsr_input_crew(const struct tsr_input *input)
{
    return input->crew;
}

enum tsr_status tsr_input_claim_header(const struct tsr_input *input, uint64_t bytes, struct tsr_error *error)
{
    if (!input->account || bytes <= TSR_UNCLAIMED_BYTES) return TSR_OK;
    return input->account->claim_header(input->account, bytes, error);
}

enum tsr_status tsr_input_claim(struct tsr_input *input, const struct tsr_header *header, const struct tsr_need *need,
                                struct tsr_error *error)
{
    input->need = *need;
    return input->account ? input->account->claim(input->account, header, need, error) : TSR_OK;
}

bool tsr_input_take_spare(const struct tsr_input *input, uint64_t bytes)
{
    struct tsr_memory_account *const account = input->account;
    return !account || !account->grant_spare || account->grant_spare(account, bytes);
}

void tsr_input_return_spare(const struct tsr_input *input, uint64_t bytes)
{
    if (input->account && input->account->return_spare) input->account->return_spare(input->account, bytes);
}

void tsr_input_give_back(struct tsr_input *input)
{
    if (!input->account) return;
    tsr_input_drop_held(input);
    input->need = (struct tsr_need){0};
    if (input->account->give_back) input->account->give_back(input->account);
}

struct tsr_need tsr_input_need(const struct tsr_input *input)
{
    return input->need;
}
