/* placeholder: replaced by the generator */
int main(void)
{
    return 0;
}
